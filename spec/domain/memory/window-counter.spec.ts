// Counts by key in windows of time.

import * as assert from 'uvu/assert';
import { WindowCounter } from '../../../src/domain/memory/window-counter.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the counter of windows');

const START_MS = 1_900_000_000_000.25;
const HOUR_MS = 3_600_000;

const hourly = (keys = 10) => new WindowCounter({ windowSeconds: 3_600, keys });

test('does not count requests over the limit, which open no window', () => {
  const counts = hourly();
  assert.equal(counts.add('a', START_MS, 6, 5), { count: 6, endsInMs: HOUR_MS });
  assert.equal(counts.add('a', START_MS + 1, 3, 5), { count: 3, endsInMs: HOUR_MS });
  assert.equal(counts.add('a', START_MS + 2, 3, 5), { count: 6, endsInMs: HOUR_MS - 1 });
  assert.equal(counts.add('a', START_MS + 3, 2, 5), { count: 5, endsInMs: HOUR_MS - 2 });
});

test('gives a count back to its own window only, not to a later one', () => {
  const counts = hourly(2);
  const endsAtMs = START_MS + HOUR_MS;
  counts.add('a', START_MS, 2);
  counts.giveBack('a', START_MS);
  assert.is(counts.add('a', START_MS, 0).count, 1);
  counts.giveBack('a', START_MS);
  counts.giveBack('a', START_MS);
  assert.is(counts.add('a', START_MS, 0).count, 0);
  counts.giveBack('b', START_MS);
  assert.is(counts.add('b', START_MS).count, 1);
  // The window has ended; then the key was dropped and has a new window.
  assert.is(counts.add('a', endsAtMs).count, 1);
  counts.giveBack('a', START_MS);
  assert.is(counts.add('a', endsAtMs, 0).count, 1);
  for (const key of ['c', 'd', 'b']) counts.add(key, START_MS + 5);
  counts.giveBack('b', START_MS);
  assert.is(counts.add('b', START_MS + 5, 0).count, 1);
});

test('drops the least recently counted key over the limit of keys', () => {
  const counts = hourly(3);
  for (const key of ['a', 'b', 'c', 'a', 'd']) counts.add(key, START_MS);
  const next = (key: string) => counts.add(key, START_MS).count;
  assert.equal([next('a'), next('c'), next('b'), next('d')], [3, 2, 1, 1]);
});

test.run();
