import * as assert from 'uvu/assert';
import { recentlyUsed } from '../../src/auth/recently-used.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('memory of what was used recently');

test('beyond the bound the key that was used longest ago is forgotten, and told', () => {
  const told: string[] = [];
  const memory = recentlyUsed<true>(3, (key) => told.push(key));
  for (const key of ['a', 'b', 'c']) memory.set(key, true);
  memory.get('a');
  memory.set('d', true);
  assert.equal(told, ['b']);
  assert.equal([...memory.keys()].toSorted(), ['a', 'c', 'd']);
});

test('an empty memory takes no room, however many it may keep', () => {
  const taken = (): number => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
  const before = taken();
  const memories = Array.from({ length: 20 }, () => recentlyUsed<true>(1_000_000));
  // Set aside, each would take 24 MB.
  assert.ok(taken() - before < 20_000_000, `${taken() - before} bytes`);
  assert.is(memories.length, 20);
});

test.run();
