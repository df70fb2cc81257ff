import * as assert from 'uvu/assert';
import { WindowCounter } from '../../src/auth/rate-limiter.ts';
import { suite } from '../helpers/suite.ts';
import { START_MS } from './auth-harness.ts';

const hourMs = 3_600_000;

const test = suite('counting in windows');

const hourly = (keys = 10) => new WindowCounter({ windowSeconds: 3_600, keys });

test('a window starts with the first count and ends for all of its counts at once', () => {
  const counts = hourly();
  assert.equal(counts.add('a', START_MS), { count: 1, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + hourMs - 1), { count: 2, endsInMs: 1 });
  assert.equal(counts.add('b', START_MS + hourMs - 1), { count: 1, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + hourMs), { count: 1, endsInMs: hourMs });
});

test('several are added at once, and looking adds and opens nothing', () => {
  const counts = hourly();
  assert.equal(counts.look('a', START_MS), { count: 0, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + 5, 3), { count: 3, endsInMs: hourMs });
  assert.equal(counts.look('a', START_MS + 6), { count: 3, endsInMs: hourMs - 1 });
  assert.equal(counts.add('a', START_MS + 6, 2), { count: 5, endsInMs: hourMs - 1 });
  assert.equal(counts.look('a', START_MS + 5 + hourMs), { count: 0, endsInMs: hourMs });
});

test('what is too much is not counted and opens nothing', () => {
  const counts = hourly();
  assert.equal(counts.add('a', START_MS, 6, 5), { count: 6, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + 1, 3, 5), { count: 3, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + 2, 3, 5), { count: 6, endsInMs: hourMs - 1 });
  assert.equal(counts.add('a', START_MS + 3, 2, 5), { count: 5, endsInMs: hourMs - 2 });
});

test('a count is given back to the window that it was taken from, and to no later one', () => {
  const counts = hourly(2);
  const endsAtMs = START_MS + hourMs;
  counts.add('a', START_MS, 2);
  counts.giveBack('a', endsAtMs);
  assert.is(counts.look('a', START_MS).count, 1);
  counts.giveBack('a', endsAtMs);
  counts.giveBack('a', endsAtMs);
  assert.is(counts.look('a', START_MS).count, 0);
  counts.giveBack('b', endsAtMs);
  assert.is(counts.add('b', START_MS).count, 1);
  // Over; and forgotten, with a new window under the same key.
  assert.is(counts.add('a', endsAtMs).count, 1);
  counts.giveBack('a', endsAtMs);
  assert.is(counts.look('a', endsAtMs).count, 1);
  for (const key of ['c', 'd', 'b']) counts.add(key, START_MS + 5);
  counts.giveBack('b', endsAtMs);
  assert.is(counts.look('b', START_MS + 5).count, 1);
});

test('the key that was counted longest ago is forgotten beyond the bound', () => {
  const counts = hourly(3);
  for (const key of ['a', 'b', 'c', 'a', 'd']) counts.add(key, START_MS);
  const next = (key: string) => counts.add(key, START_MS).count;
  assert.equal([next('a'), next('c'), next('b'), next('d')], [3, 2, 1, 1]);
});

test('a clock that is set back by a year makes no window longer', () => {
  const counts = hourly();
  for (let count = 0; count < 5; count += 1) counts.add('a', START_MS);
  assert.equal(counts.add('a', START_MS - 365 * 24 * hourMs), { count: 1, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS - 365 * 24 * hourMs + 5), { count: 2, endsInMs: hourMs - 5 });
});

test('an empty counter takes no memory, however many keys it may have', () => {
  const taken = (): number => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
  const before = taken();
  const counters = Array.from({ length: 20 }, () => hourly(1_000_000));
  // Reserved at once, each would take 24 MB.
  assert.ok(taken() - before < 20_000_000, `${taken() - before} bytes`);
  assert.is(counters.length, 20);
});

test.run();
