// The conformance tests for the lives of nodes in a Store.

import * as assert from 'uvu/assert';
import { RELEASED } from '../../src/domain/nodes/life.ts';
import { MAX_LIVES, type Store, type StoredLife } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function nodeConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'nodes: ');

  declare('gives back lives as they were written, whatever their text', async (store) => {
    const { nodes } = store;
    const revision = await store.revision();
    const lives = HOSTILE_TEXTS.map((text, index) => lifeOf(`life-${index}`, { profile: text, state: text }));
    for (const life of lives) await nodes.insert(life);
    assert.equal(sorted(await nodes.list()), sorted(lives));
    assert.is(await store.revision(), revision);
  });

  declare('a life that is stored is not inserted again', async ({ nodes }) => {
    await nodes.insert(lifeOf('a'));
    await nodes.insert(lifeOf('a', { state: 'later', counter: 7 }));
    assert.equal(await nodes.list(), [lifeOf('a')]);
  });

  declare('a heartbeat adds one to the counter of a life that has not ended', async ({ nodes }) => {
    await nodes.insert(lifeOf('a'));
    await nodes.insert(lifeOf('b', { end: REFUSED }));
    assert.equal(await Promise.all(['a', 'b', 'c'].map((life) => nodes.beat(life, 'new'))), [
      true,
      false,
      false,
    ]);
    assert.equal(sorted(await nodes.list()), [
      lifeOf('a', { counter: 1, state: 'new' }),
      lifeOf('b', { end: REFUSED }),
    ]);
  });

  declare('a life ends once, if its counter is the one that was read', async ({ nodes }) => {
    await nodes.insert(lifeOf('a', { counter: 4 }));
    assert.is(await nodes.end('a', 3, REFUSED), false);
    assert.is(await nodes.end('a', 4, REFUSED), true);
    assert.is(await nodes.end('a', 4, REFUSED), false);
    assert.equal(await nodes.list(), [lifeOf('a', { counter: 4, end: REFUSED })]);
    assert.is(await nodes.end('z', undefined, REFUSED), false);
  });

  declare('a life that freed its sessions may free all, and then nothing more', async ({ nodes }) => {
    await nodes.insert(lifeOf('a', { end: REFUSED }));
    assert.is(await nodes.end('a', 0, FREED), true);
    assert.is(await nodes.end('a', 0, { cause: 'expired', frees: 'all' }), false);
    assert.equal(await nodes.list(), [lifeOf('a', { end: FREED })]);
  });

  declare('the own life ends whatever its counter', async ({ nodes }) => {
    await nodes.insert(lifeOf('a', { counter: 9 }));
    assert.is(await nodes.end('a', undefined, { cause: 'stopped', frees: 'all' }), true);
  });

  declare(
    'the sessions of deleted lives are deleted, those that other lives claimed are not',
    async (store) => {
      const { nodes, sessions } = store;
      const rowOf = (key: string, life: string) => ({
        ...{ key, life, node: 'n', generation: 1, value: '{}', usedAt: '2026-01-02T03:04:05.678Z' },
      });
      await nodes.insert(lifeOf('a', { end: FREED }));
      await nodes.insert(lifeOf('b', { end: REFUSED }));
      await sessions.insert([rowOf('1', 'a'), rowOf('2', 'b'), rowOf('3', 'c')]);
      await nodes.delete(['a', 'b', 'c']);
      const left = await sessions.read(['1', '2', '3']);
      assert.equal(left.map(({ key }) => key).toSorted(), ['2', '3']);
    },
  );

  declare('the sessions that a node has released are deleted with its last life', async (store) => {
    const { nodes, sessions } = store;
    const rowOf = (key: string, node: string, life = RELEASED) => ({
      ...{ key, life, node, generation: 1, value: '{}', usedAt: '2026-01-02T03:04:05.678Z' },
    });
    for (const [life, node] of [
      ['a', 'gone'],
      ['b', 'back'],
      ['c', 'gone'],
    ] as const)
      await nodes.insert(lifeOf(life, { node, end: FREED }));
    await nodes.insert(lifeOf('d', { node: 'back' }));
    const rows = [rowOf('1', 'gone'), rowOf('2', 'back'), rowOf('3', 'other'), rowOf('4', 'gone', 'e')];
    await sessions.insert(rows);
    const left = async () => (await sessions.read(['1', '2', '3', '4'])).map(({ key }) => key).toSorted();
    await nodes.delete(['a', 'b']);
    assert.equal(await left(), ['1', '2', '3', '4']);
    await nodes.delete(['c']);
    assert.equal(await left(), ['2', '3', '4']);
  });

  declare('only lives that free all are deleted', async ({ nodes }) => {
    await nodes.insert(lifeOf('a', { end: FREED }));
    await nodes.insert(lifeOf('b', { end: REFUSED }));
    await nodes.insert(lifeOf('c'));
    await nodes.delete(['a', 'b', 'c', 'd']);
    assert.equal(
      sorted(await nodes.list()).map(({ life }) => life),
      ['b', 'c'],
    );
  });

  declare('however many lives have freed all, those that have not are read', async ({ nodes }) => {
    await nodes.insert(lifeOf('last'));
    await nodes.insert(lifeOf('later', { end: REFUSED }));
    for (let number = 0; number < MAX_LIVES; number += 1)
      await nodes.insert(lifeOf(`a-${number}`, { end: FREED }));
    const lives = (await nodes.list()).map(({ life }) => life);
    assert.equal(lives.filter((life) => !life.startsWith('a-')).toSorted(), ['last', 'later']);
  });

  declare('of several ends of a life at the same time one succeeds', async ({ nodes }) => {
    await nodes.insert(lifeOf('a'));
    const ends = await Promise.all(Array.from({ length: 4 }, () => nodes.end('a', 0, REFUSED)));
    assert.is(ends.filter(Boolean).length, 1);
  });
}

const REFUSED = { cause: 'refused', frees: 'sessions' } as const;
const FREED = { cause: 'refused', frees: 'all' } as const;

function lifeOf(life: string, more: Partial<StoredLife> = {}): StoredLife {
  return { life, node: `node of ${life}`, counter: 0, profile: '{}', state: '{}', end: undefined, ...more };
}

function sorted(lives: readonly StoredLife[]): StoredLife[] {
  return lives.toSorted((a, b) => (a.life < b.life ? -1 : 1));
}
