import * as assert from 'uvu/assert';
import { timeOrderedIds } from '../../src/auth/audit-ids.ts';
import { suite } from '../helpers/suite.ts';
import { START_MS, stoppedClock } from './auth-harness.ts';

const test = suite('ids that sort by time');

test('are UUIDs of version 7 that begin with the time', () => {
  const id = timeOrderedIds(() => START_MS)();
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.is(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), START_MS);
});

test('rise strictly within a millisecond, beyond the 4,096 of it, and when the clock steps back', () => {
  const clock = stoppedClock();
  const nextId = timeOrderedIds(clock.now);
  const ids: string[] = [];
  for (const step of [0, 1, 0, -5_000, 4_990, 20]) {
    clock.pass(step);
    for (let count = 0; count < 5_000; count += 1) ids.push(nextId());
  }
  assert.equal(ids.toSorted(), ids);
  assert.is(new Set(ids).size, ids.length);
});

test('of two nodes at the same moment differ', () => {
  const [one, other] = [timeOrderedIds(() => START_MS), timeOrderedIds(() => START_MS)];
  const ids = Array.from({ length: 100 }, () => [one(), other()]).flat();
  assert.is(new Set(ids).size, 200);
});

test.run();
