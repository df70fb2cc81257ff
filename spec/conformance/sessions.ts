// The conformance tests for the sessions of a Store.

import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import {
  MAX_SESSION_ROWS,
  type SessionStore,
  type Store,
  type StoredSession,
} from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function sessionConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'sessions: ');

  declare(
    'gives back rows as they were written, whatever their text, and none that is not there',
    async (store) => {
      const { sessions } = store;
      const revision = await store.revision();
      const values = [...HOSTILE_TEXTS, 'x'.repeat(16 * 1024), '漢'.repeat(5_000)];
      const rows = values.map((value, index) => rowOf(`text ${index}`, { value }));
      await sessions.insert(rows);
      const none = rowOf('none');
      assert.equal(sorted(await sessions.read([...rows, none].map(({ key }) => key))), sorted(rows));
      assert.equal(await sessions.read([none.key]), []);
      assert.is(await store.revision(), revision);
    },
  );

  declare('inserts again what was inserted, without a change and with the new rows', async ({ sessions }) => {
    const [first, second] = [rowOf('1'), rowOf('2')];
    await sessions.insert([first]);
    await sessions.insert([{ ...first, value: 'later' }, second]);
    assert.equal(sorted(await sessions.read([first.key, second.key])), sorted([first, second]));
  });

  declare('changes the rows of the life in one group, and names the owners of all', async ({ sessions }) => {
    const own = Array.from({ length: MAX_SESSION_ROWS - 2 }, (_, index) => rowOf(`own ${index}`));
    const foreign = rowOf('foreign', { life: 'life-2--' });
    const gone = rowOf('gone');
    for (const group of [own, [foreign]]) await sessions.insert(group);
    const changes = [...own, foreign, gone].map(({ key }, index) => ({
      key,
      value: `new '${index}'`,
      usedAt: LATER,
    }));
    const owners = await sessions.update('life-1--', changes);
    assert.equal(
      new Map([...owners].toSorted()),
      new Map([...own, foreign].map(({ key, life }) => [key, life] as const).toSorted()),
    );
    const changed = own.map((row, index) => ({ ...row, value: `new '${index}'`, usedAt: LATER }));
    assert.equal(await allOf(sessions, [...own, foreign]), sorted([...changed, foreign]));
  });

  declare('a claim takes the rows that are as they were read, once', async ({ sessions }) => {
    const rows = [rowOf('1'), rowOf('2'), rowOf('3', { life: 'life-9--' })];
    await sessions.insert(rows);
    const read = await sessions.read(rows.map(({ key }) => key));
    const [moved] = sorted(read);
    if (moved === undefined) throw new Error('there are rows');
    const first = { node: 'b', life: 'life-b--' };
    const own = { ...moved, ...first, generation: 2 };
    assert.equal(await sessions.claim([moved], first), [own]);
    const second = { node: 'c', life: 'life-c--' };
    const others = sorted(read).flatMap((row) =>
      row.key === moved.key ? [] : { ...row, ...second, generation: 2 },
    );
    assert.equal(sorted(await sessions.claim(read, second)), others);
    assert.equal(await allOf(sessions, rows), sorted([own, ...others]));
    assert.equal(await sessions.claim([moved], first), [own]); // its answer was lost
    assert.equal(await allOf(sessions, rows), sorted([own, ...others]));
  });

  declare('a claim gives the value that the former owner wrote before it', async ({ sessions }) => {
    const row = rowOf('1');
    await sessions.insert([row]);
    await sessions.update(row.life, [{ key: row.key, value: 'later', usedAt: LATER }]);
    const next = { node: 'b', life: 'life-b--' };
    assert.equal(await sessions.claim([row], next), [
      { ...row, ...next, generation: 2, value: 'later', usedAt: LATER },
    ]);
  });

  declare('of many claims of one row one succeeds', async ({ sessions }) => {
    const row = rowOf('1');
    await sessions.insert([row]);
    const lives = Array.from({ length: 8 }, (_, index) => `life-${index}--`);
    const claims = await Promise.all(lives.map((life) => sessions.claim([row], { node: 'n', life })));
    assert.is(claims.filter(({ length }) => length === 1).length, 1);
  });

  declare('deletes only rows of the life', async ({ sessions }) => {
    const [own, kept] = [rowOf('own'), rowOf('kept')];
    const foreign = rowOf('foreign', { life: 'life-2--' });
    await sessions.insert([own, kept, foreign]);
    await sessions.delete('life-1--', [own.key, foreign.key, rowOf('none').key]);
    assert.equal(await allOf(sessions, [own, kept, foreign]), sorted([kept, foreign]));
  });

  declare('trims the rows of other lives of the node to the last used ones', async ({ sessions }) => {
    const times = Array.from({ length: 5 }, (_, index) => `2026-01-02T03:04:0${index}.678Z`);
    const old = times.map((usedAt, index) => rowOf(`old ${index}`, { usedAt, life: `life-${index}--` }));
    const kept = [rowOf('own', { life: 'present-' }), rowOf('other node', { node: 'other' })];
    await sessions.insert([...old, ...kept]);
    const owner = { node: 'n', life: 'present-' };
    assert.is(await sessions.trim(owner, 5), 0);
    assert.is(await sessions.trim(owner, 2), 3);
    assert.is(await sessions.trim(owner, 2), 0);
    assert.equal(await allOf(sessions, [...old, ...kept]), sorted([...old.slice(3), ...kept]));
    assert.is(await sessions.trim(owner, 0), 2);
    assert.equal(await allOf(sessions, [...old, ...kept]), sorted(kept));
  });
}

const LATER = '2026-02-03T04:05:06.789Z';

function rowOf(id: string, fields: Partial<StoredSession> = {}): StoredSession {
  return {
    key: createHash('sha256').update(id).digest('hex'),
    node: 'n',
    life: 'life-1--',
    generation: 1,
    value: `{"id":"${id}"}`,
    usedAt: '2026-01-02T03:04:05.678Z',
    ...fields,
  };
}

async function allOf(sessions: SessionStore, rows: readonly StoredSession[]): Promise<StoredSession[]> {
  return sorted(await sessions.read(rows.map(({ key }) => key)));
}

function sorted(rows: readonly StoredSession[]): StoredSession[] {
  return rows.toSorted((one, other) => (one.key < other.key ? -1 : 1));
}
