// When answers are told that they are slow: a second after each began, by one timer for all.

import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { createSlowAnswerTimer } from '../../src/protocol/client-call.ts';
import { suite } from '../helpers/suite.ts';
import { untimedScheduler } from '../helpers/time/turns.ts';

const test = suite('slow answers');

function fixture() {
  let nowMs = 0;
  const timers: { readonly atMs: number; readonly ring: () => void }[] = [];
  const alarm = (waitMs: number, ring: () => void) => {
    timers.push({ atMs: nowMs + waitMs, ring });
    return () => assert.unreachable('no timer is cancelled');
  };
  const background = { alarm, every: () => assert.unreachable('no interval') as never };
  const rung: string[] = [];
  const slow = createSlowAnswerTimer({ ...systemClock, now: () => nowMs, background }, untimedScheduler());
  return {
    slow,
    timers,
    rung,
    answer: (name: string) => ({ dueAtMs: 0, onDue: () => void rung.push(`${name} at ${nowMs}`) }),
    /** Rings every timer that is due until then. */
    passUntil(endMs: number): void {
      for (let next = timers[0]; next !== undefined && next.atMs <= endMs; next = timers[0]) {
        timers.shift();
        nowMs = next.atMs;
        next.ring();
      }
      nowMs = endMs;
    },
  };
}

test('each is told a second after it began, with those of the next 50 ms, and the timer is set for the next one', () => {
  const { slow, timers, rung, answer, passUntil } = fixture();
  slow.add(answer('a'));
  passUntil(50);
  slow.add(answer('b'));
  passUntil(300);
  slow.add(answer('c'));
  assert.is(timers.length, 1);
  passUntil(5_000);
  assert.equal(rung, ['a at 1000', 'b at 1000', 'c at 1300']);
  assert.is(timers.length, 0);
});

test('one that has ended is not told, and delays no other one', () => {
  const { slow, timers, rung, answer, passUntil } = fixture();
  const ended = answer('ended');
  slow.add(ended);
  passUntil(400);
  slow.add(answer('late'));
  slow.delete(ended);
  slow.delete(ended);
  passUntil(1_399);
  assert.equal(rung, []);
  passUntil(9_000);
  assert.equal(rung, ['late at 1400']);
  assert.is(timers.length, 0);
});

test('an answer that begins while another one is told waits a whole second', () => {
  const { slow, rung, answer, passUntil } = fixture();
  const first = answer('first');
  slow.add({ ...first, onDue: () => slow.add(answer('second')) });
  passUntil(9_000);
  assert.equal(rung, ['second at 2000']);
});

test.run();
