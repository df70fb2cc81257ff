// The store in memory: what every store does, and its order.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { storeConformance } from '../conformance/store.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('memory store');

storeConformance(test, async () => new MemoryStore());

test('lists in the order of the first saving', async () => {
  const store = new MemoryStore();
  for (const name of ['c', 'a', 'b', 'a']) await store.saveTemplate({ name, loadBalancer: {} });
  assert.equal(
    (await store.listTemplates()).map(({ name }) => name),
    ['c', 'a', 'b'],
  );
});

test('shares nothing with another store', async () => {
  await new MemoryStore().saveTemplate({ name: 'demo', loadBalancer: {} });
  assert.equal(await new MemoryStore().listTemplates(), []);
});

test.run();
