// The store in memory: what every store does, and that it is nobody else's.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { suite } from '../helpers/suite.ts';
import { everyConformance } from './every-conformance.ts';

const test = suite('memory store');

everyConformance(test, async () => new MemoryStore());

test('shares nothing with another store', async () => {
  await new MemoryStore().saveTemplate({ name: 'demo', loadBalancer: {} });
  assert.equal(await new MemoryStore().listTemplates(), []);
});

test.run();
