// The conformance tests for the leases of programs in a Store.

import * as assert from 'uvu/assert';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function programConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'programs: ');

  declare('a lease is taken once in each generation, and changes no revision', async (store) => {
    const { programs } = store;
    const revision = await store.revision();
    assert.is(await programs.take('p', 1, 'a'), false, 'there is no lease');
    assert.is(await programs.take('p', 0, 'a'), true);
    assert.is(await programs.take('p', 0, 'b'), false);
    assert.equal(await programs.list(), [{ program: 'p', life: 'a', generation: 1, marks: '' }]);
    assert.is(await programs.take('p', 1, 'b'), true, 'that of an ended life');
    assert.equal(await programs.list(), [{ program: 'p', life: 'b', generation: 2, marks: '' }]);
    assert.is(await store.revision(), revision);
  });

  declare('only its holder releases a lease, with marks of any text', async ({ programs }) => {
    await programs.take('p', 0, 'a');
    const lease = { program: 'p', life: 'a', generation: 1, marks: HOSTILE_TEXTS.join() };
    assert.is(await programs.release({ ...lease, life: 'b' }), false);
    assert.is(await programs.release({ ...lease, generation: 2 }), false);
    assert.is(await programs.release(lease), true);
    assert.is(await programs.release(lease), false);
    assert.equal(await programs.list(), [{ ...lease, life: undefined }]);
    assert.is(await programs.take('p', 1, 'b'), true);
    assert.equal(await programs.list(), [{ ...lease, life: 'b', generation: 2 }]);
  });

  declare('of several nodes that take a lease at the same time one gets it', async ({ programs }) => {
    for (const generation of [0, 1]) {
      const lives = ['a', 'b', 'c', 'd'];
      const taken = await Promise.all(lives.map((life) => programs.take('p', generation, life)));
      assert.is(taken.filter(Boolean).length, 1);
    }
  });

  declare('only rows that are as they were read are deleted', async ({ programs }) => {
    await programs.take('p', 0, 'a');
    await programs.take('q', 0, 'a');
    const read = await programs.list();
    await programs.take('q', 1, 'b');
    await programs.delete(read);
    assert.equal(
      (await programs.list()).map(({ program }) => program),
      ['q'],
    );
  });
}
