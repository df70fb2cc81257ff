// The conformance tests for the views in a Store.

import * as assert from 'uvu/assert';
import type { StoredView } from '../../src/domain/views/view.ts';
import { type Store, VIEWS } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

function viewOf(id: string, title = 't'): StoredView {
  return {
    definition: { id, title, from: [{ template: 'a', tools: ['*'], defaults: { x: { y: [1, null] } } }] },
    names: { tools: { x: 'a/x', y: '' }, prompts: {} },
    source: 'api',
    updatedAt: '2026-06-01T00:00:00.123Z',
  };
}

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function viewConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'views: ');

  declare('a view is stored as it is, and each change is one of the revision', async (store) => {
    const { views } = store;
    const revision = await store.revision();
    const first = viewOf('b', HOSTILE_TEXTS.join());
    assert.is(await views.save(first, null), revision + 1);
    const second: StoredView = { ...viewOf('a'), source: 'file', fingerprint: 'f' };
    assert.is(await views.save(second, null), revision + 2);
    assert.equal(await views.list(), [first, second]);
    const changed = viewOf('b', 'x'.repeat(100_000));
    assert.is(await views.save(changed, first), revision + 3);
    assert.is(await views.delete(second), revision + 4);
    assert.is(await views.delete(second), undefined);
    assert.equal(await views.list(), [changed]);
  });

  declare('a deleted view of a file leaves a tombstone until it is saved again', async (store) => {
    const { views } = store;
    const found = async () => [...(await store.instances.findTombstones(VIEWS, ['a', 'b', 'c']))];
    for (const id of ['a', 'b']) await views.save(viewOf(id), null);
    await views.delete(viewOf('b'));
    assert.is(await views.delete(viewOf('c'), 'f'), undefined);
    assert.equal(await found(), []);
    await views.delete(viewOf('a'), 'fingerprint');
    assert.equal(await found(), [['a', 'fingerprint']]);
    await views.save(viewOf('a'), null);
    assert.equal(await found(), []);
  });

  declare('a view that is not as it was read is neither changed nor deleted', async (store) => {
    const { views } = store;
    const stored = viewOf('a');
    await views.save(stored, null);
    const revision = await store.revision();
    for (const before of [null, viewOf('a', 'other')])
      assert.is(await views.save(viewOf('a', 'new'), before), undefined);
    assert.is(await views.save(viewOf('b'), viewOf('b')), undefined);
    assert.is(await views.delete(viewOf('a', 'other'), 'fingerprint'), undefined);
    assert.equal([await views.list(), await store.revision()], [[stored], revision]);
  });
}
