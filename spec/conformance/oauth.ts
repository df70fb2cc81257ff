// The conformance tests for the rows of the authorization server in a Store.

import * as assert from 'uvu/assert';
import type { OAuthFilter, OAuthRow } from '../../src/persistence/oauth-store.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

type NewRow = Omit<OAuthRow, 'version'>;

const NONE = {
  grantId: undefined,
  userId: undefined,
  clientKey: undefined,
  usedAt: undefined,
  consumedAt: undefined,
  expiresAt: undefined,
};

function rowOf(key: string, changes: Partial<NewRow> = {}): NewRow {
  return { kind: 'code', key, createdAt: at(0), value: '{}', ...NONE, ...changes };
}

function at(ms: number): string {
  return new Date(Date.UTC(2026, 10, 26) + ms).toISOString();
}

function keysOf(rows: readonly OAuthRow[]): string[] {
  return rows.map(({ key }) => key);
}

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function oauthConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'oauth: ');

  declare('gives back every field, and values of any text', async ({ oauth }) => {
    const full = rowOf('f'.repeat(64), {
      kind: 'connecting',
      grantId: 'g'.repeat(64),
      userId: 'u'.repeat(64),
      clientKey: 'c'.repeat(64),
      usedAt: at(1),
      expiresAt: at(2),
      value: `${HOSTILE_TEXTS.join()}${'x'.repeat(70_000)}`,
    });
    await oauth.save(full);
    await oauth.save(rowOf('small'));
    assert.equal(await oauth.find('connecting', [full.key, 'small', 'none']), [{ ...full, version: 1 }]);
    assert.equal(await oauth.find('code', ['small']), [{ ...rowOf('small'), version: 1 }]);
  });

  declare('finds the rows of any number of keys', async ({ oauth }) => {
    for (const key of ['first', 'last']) await oauth.save(rowOf(key));
    const others = Array.from({ length: 40_000 }, (_, index) => `other ${index}`);
    const found = await oauth.find('code', ['first', ...others, 'last']);
    assert.equal(keysOf(found), ['first', 'last']);
  });

  declare('a row is saved again under its key, and changes no revision', async (store) => {
    const { oauth } = store;
    const revision = await store.revision();
    await oauth.save(rowOf('a', { userId: 'u' }));
    await oauth.save(rowOf('a', { value: 'new', expiresAt: at(5) }));
    assert.equal(await oauth.find('code', ['a']), [
      { ...rowOf('a', { value: 'new', expiresAt: at(5) }), version: 2 },
    ]);
    assert.is(await store.revision(), revision);
  });

  declare('a row is consumed once, by one of many, and stays consumed', async ({ oauth }) => {
    await oauth.save(rowOf('a'));
    const tries = Array.from({ length: 5 }, (_, index) => oauth.consume('code', 'a', at(index)));
    assert.is((await Promise.all(tries)).filter(Boolean).length, 1);
    assert.is(await oauth.consume('code', 'none', at(1)), false);
    assert.is(await oauth.consume('refresh', 'a', at(1)), false, 'another kind');
    await oauth.save(rowOf('a', { value: 'again' }));
    const [row] = await oauth.find('code', ['a']);
    assert.is(row?.value, 'again');
    assert.ok(row?.consumedAt);
  });

  declare('a row is replaced in the version that was read, by one of many', async ({ oauth }) => {
    const inserts = ['x', 'y'].map((value) => oauth.replace(rowOf('a', { value }), 0));
    assert.is((await Promise.all(inserts)).filter(Boolean).length, 1);
    const tries = ['p', 'q', 'r'].map((value) => oauth.replace(rowOf('a', { value }), 1));
    assert.is((await Promise.all(tries)).filter(Boolean).length, 1);
    assert.is(await oauth.replace(rowOf('a'), 1), false);
    assert.is(await oauth.replace(rowOf('a', { value: 'z', consumedAt: at(3) }), 2), true);
    const [row] = await oauth.find('code', ['a']);
    assert.equal(row, { ...rowOf('a', { value: 'z', consumedAt: at(3) }), version: 3 });
  });

  declare('a row is deleted in the version that was read, by one of many', async ({ oauth }) => {
    await oauth.save(rowOf('a'));
    await oauth.save(rowOf('a'));
    assert.is(await oauth.delete('code', ['a', 'b'], 1), 0);
    const tries = [1, 2, 3].map(() => oauth.delete('code', ['a'], 2));
    assert.is((await Promise.all(tries)).filter((count) => count === 1).length, 1);
    for (const key of ['a', 'b', 'c']) await oauth.save(rowOf(key));
    assert.is(await oauth.delete('refresh', ['a']), 0, 'another kind');
    assert.is(await oauth.delete('code', ['a', 'b', 'none']), 2);
    assert.equal(keysOf(await oauth.list({ kind: 'code' }, 10)), ['c']);
  });

  declare('rows are listed newest first, and counted', async ({ oauth }) => {
    await oauth.save(rowOf('a', { kind: 'grant', userId: 'u', clientKey: 'c', createdAt: at(1) }));
    await oauth.save(rowOf('b', { kind: 'grant', userId: 'u', createdAt: at(2), usedAt: at(3) }));
    await oauth.save(rowOf('c', { kind: 'grant', userId: 'v', createdAt: at(3) }));
    await oauth.save(rowOf('d', { userId: 'u', createdAt: at(4) }));
    assert.equal(keysOf(await oauth.list({ kind: 'grant' }, 10)), ['c', 'b', 'a']);
    assert.equal(keysOf(await oauth.list({ kind: 'grant' }, 2)), ['c', 'b']);
    assert.equal(keysOf(await oauth.list({ kind: 'grant', userId: 'u' }, 10)), ['b', 'a']);
    assert.equal(keysOf(await oauth.list({ clientKey: 'c' }, 10)), ['a']);
    assert.is(await oauth.count({ userId: 'u' }), 3);
    assert.is(await oauth.count({ kind: 'grant', isUsed: false }), 2);
  });

  declare('the time of the last use is set by key', async (store) => {
    const { oauth } = store;
    await oauth.save(rowOf('a', { kind: 'grant' }));
    await oauth.save(rowOf('b', { kind: 'grant' }));
    const revision = await store.revision();
    await oauth.touch(
      'grant',
      new Map([
        ['a', at(7)],
        ['none', at(8)],
      ]),
    );
    const rows = await oauth.find('grant', ['a', 'b']);
    assert.equal(
      new Map(rows.map(({ key, usedAt }) => [key, usedAt])),
      new Map([
        ['a', at(7)],
        ['b', undefined],
      ]),
    );
    await oauth.touch('grant', new Map());
    assert.is(await store.revision(), revision);
  });

  declare('the end of a grant deletes all of it, and changes the revision', async (store) => {
    const { oauth } = store;
    await oauth.save(rowOf('a', { kind: 'grant', grantId: 'g', userId: 'u', clientKey: 'c' }));
    await oauth.save(rowOf('b', { grantId: 'g', userId: 'u' }));
    await oauth.save(rowOf('c', { grantId: 'h', userId: 'u', clientKey: 'c' }));
    const revision = await store.revision();
    assert.is(await oauth.end({ grantId: 'none' }), false);
    assert.is(await store.revision(), revision);
    assert.is(await oauth.end({ grantId: 'g' }), true);
    assert.is.not(await store.revision(), revision);
    assert.equal(keysOf(await oauth.list({}, 10)), ['c']);
    assert.is(await oauth.end({ kind: 'grant', userId: 'u' }), false);
    assert.is(await oauth.end({ clientKey: 'c' }), true);
    assert.is(await oauth.count({}), 0);
    assert.is(
      await oauth.end({ kind: 'grant' }).catch(() => 'refused'),
      'refused',
      'of nothing in particular',
    );
  });

  declare('the rows of a user are deleted with the user', async ({ oauth, accounts }) => {
    const user = {
      id: 'u1',
      username: 'ada',
      email: 'ada@example.org',
      role: 'user',
      isActive: true,
      passwordHash: 'x',
      credentialsChangedAt: at(0),
      createdAt: at(0),
      updatedAt: at(0),
    } as const;
    await accounts.insertUser(user);
    await oauth.save(rowOf('a', { kind: 'sign-in', userId: user.id }));
    await oauth.save(rowOf('b', { kind: 'sign-in', userId: 'other' }));
    await accounts.deleteUser(user.id);
    assert.equal(keysOf(await oauth.list({}, 10)), ['b']);
  });

  declare('a sweep deletes what has expired', async ({ oauth }) => {
    await oauth.save(rowOf('a', { expiresAt: at(10) }));
    await oauth.save(rowOf('b', { expiresAt: at(20) }));
    await oauth.save(rowOf('c'));
    assert.is(await oauth.sweep(at(9)), 0);
    assert.is(await oauth.sweep(at(10)), 1);
    assert.is(await oauth.sweep(at(10)), 0);
    assert.equal(keysOf(await oauth.list({}, 10)).toSorted(), ['b', 'c']);
    await oauth.delete('code', ['b', 'none']);
    await oauth.delete('refresh', ['c']);
    assert.equal(keysOf(await oauth.list({}, 10)), ['c']);
  });

  declare('finds rows of no user, and rows by the first digits of their keys', async ({ oauth }) => {
    const [first, second] = ['0'.repeat(64), `${'0'.repeat(31)}f${'f'.repeat(32)}`];
    await oauth.save(rowOf(first, { kind: 'connection' }));
    await oauth.save(rowOf(second, { kind: 'connection', userId: 'u', createdAt: at(1) }));
    const found = async (filter: OAuthFilter) => keysOf(await oauth.list(filter, 10));
    assert.equal(await found({ userId: null }), [first]);
    assert.equal(await found({ userId: undefined }), [second, first]);
    assert.is(await oauth.count({ kind: 'connection', userId: null }), 1);
    assert.equal(await found({ keyPrefix: '0'.repeat(31) }), [second, first]);
    assert.equal(await found({ keyPrefix: '0'.repeat(32) }), [first]);
    assert.equal(await found({ keyPrefix: second }), [second]);
    assert.equal(await found({ keyPrefix: '0'.repeat(31), userId: 'other' }), []);
  });

  declare('the oldest rows of a filter are found without their values', async ({ oauth }) => {
    for (const n of [2, 0, 1]) await oauth.save(rowOf(`a${n}`, { kind: 'client', createdAt: at(n) }));
    await oauth.save(rowOf('used', { kind: 'client', usedAt: at(9) }));
    await oauth.save(rowOf('code'));
    const found = [0, 1].map((n) => ({ key: `a${n}`, createdAt: at(n) }));
    assert.equal(await oauth.oldest({ kind: 'client', isUsed: false }, 2), found);
    assert.equal(keysOf(await oauth.list({ kind: 'client' }, 9)).length, 4);
    assert.equal(await oauth.oldest({ kind: 'grant' }, 2), []);
  });
}
