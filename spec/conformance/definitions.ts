// The conformance tests for the template definitions in a Store.

import * as assert from 'uvu/assert';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function definitionConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'definitions: ');

  declare('one is kept exactly, replaced by its id, and deleted once', async ({ definitions }) => {
    assert.equal(await definitions.list(), []);
    const value = { id: 'b', args: [...HOSTILE_TEXTS], description: 'x'.repeat(100_000), ports: [1] };
    await definitions.save({ id: 'b', value });
    await definitions.save({ id: 'a', value: {} });
    await definitions.save({ id: 'B', value: { id: 'B' } });
    const replaced = { id: 'b', value: { ...value, ports: [2, 3] } };
    await definitions.save(replaced);
    assert.equal(await definitions.list(), [
      replaced,
      { id: 'a', value: {} },
      { id: 'B', value: { id: 'B' } },
    ]);
    assert.ok((await definitions.delete('a')) !== undefined);
    assert.is(await definitions.delete('a'), undefined);
    assert.equal(
      (await definitions.list()).map(({ id }) => id),
      ['b', 'B'],
    );
  });

  declare('each change is one of the revision', async (store) => {
    const before = await store.revision();
    assert.is(await store.definitions.save({ id: 'a', value: {} }), before + 1);
    assert.is(await store.definitions.delete('a'), before + 2);
    assert.is(await store.revision(), before + 2);
  });
}
