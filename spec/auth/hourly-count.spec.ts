import * as assert from 'uvu/assert';
import { HourlyCount } from '../../src/auth/hourly-count.ts';
import { suite } from '../helpers/suite.ts';
import { START_MS } from './auth-stage.ts';

const hourMs = 3_600_000;

const test = suite('counting by the hour');

test('a window starts with the first count and ends for all of its counts at once', () => {
  const counts = new HourlyCount(10);
  assert.equal(counts.add('a', START_MS), { count: 1, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + hourMs - 1), { count: 2, endsInMs: 1 });
  assert.equal(counts.add('b', START_MS + hourMs - 1), { count: 1, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + hourMs), { count: 1, endsInMs: hourMs });
});

test('several are added at once, and looking adds and opens nothing', () => {
  const counts = new HourlyCount(10);
  assert.equal(counts.look('a', START_MS), { count: 0, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS + 5, 3), { count: 3, endsInMs: hourMs });
  assert.equal(counts.look('a', START_MS + 6), { count: 3, endsInMs: hourMs - 1 });
  assert.equal(counts.add('a', START_MS + 6, 2), { count: 5, endsInMs: hourMs - 1 });
  assert.equal(counts.look('a', START_MS + 5 + hourMs), { count: 0, endsInMs: hourMs });
});

test('the key that was counted longest ago is forgotten beyond the bound', () => {
  const counts = new HourlyCount(3);
  for (const key of ['a', 'b', 'c', 'a', 'd']) counts.add(key, START_MS);
  const next = (key: string) => counts.add(key, START_MS).count;
  assert.equal([next('a'), next('c'), next('b'), next('d')], [3, 2, 1, 1]);
});

test('a clock that is set back by a year makes no window longer', () => {
  const counts = new HourlyCount(10);
  for (let count = 0; count < 5; count += 1) counts.add('a', START_MS);
  assert.equal(counts.add('a', START_MS - 365 * 24 * hourMs), { count: 1, endsInMs: hourMs });
  assert.equal(counts.add('a', START_MS - 365 * 24 * hourMs + 5), { count: 2, endsInMs: hourMs - 5 });
});

test.run();
