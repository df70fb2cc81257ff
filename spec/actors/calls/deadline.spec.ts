// The time of one call, by itself. How it ends a call is in call-deadline.spec.ts. Time passes only when the spec says so.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Deadline } from '../../../src/actors/calls/deadline.ts';
import type { ClientReply } from '../../../src/domain/client.ts';
import { alarmOf } from '../../../src/domain/clock.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace } from '../../helpers/turns.ts';

/** Ten minutes may pass here in one turn of the event loop. */
const alarm = alarmOf(steadyPace(1_000));

const test = suite('deadline');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
test.after.each(() => mock.timers.reset());

const REPLY: ClientReply = { result: {} };

test('stands still until the last of several questions is answered', () => {
  const { deadline, over } = make(5_000);
  const [one, two] = [question(), question()].map(({ asked }) => deadline.pauseFor(asked));
  mock.timers.tick(60_000);
  one?.answer(REPLY);
  one?.answer(REPLY);
  mock.timers.tick(60_000);
  assert.equal(over, []);
  two?.answer(REPLY);
  mock.timers.tick(5_000);
  assert.equal(over, [125_000]);
});

test('passes an answer on that comes after the end, and waits for nothing any more', () => {
  const { deadline, over } = make(5_000);
  const { asked, replies } = question();
  const standing = deadline.pauseFor(asked);
  deadline.end();
  standing.answer(REPLY);
  mock.timers.tick(1_000_000);
  assert.equal([over, replies], [[], [REPLY]]);
});

test('counts from when the call came, where that was before', () => {
  const { deadline, over } = make(5_000, Date.now() - 3_000);
  mock.timers.tick(1_999);
  assert.equal(over, []);
  deadline.noteMessage();
  mock.timers.tick(4_999);
  assert.equal(over, []);
  mock.timers.tick(1);
  assert.equal(over, [9_999]);
  const late = make(5_000, Date.now() - 6_000);
  mock.timers.tick(1);
  assert.equal(late.over, [6_001]);
});

test.run();

function make(timeoutMs: number, cameAtMs?: number) {
  const over: number[] = [];
  const clock = { now: () => Date.now(), alarm };
  return { over, deadline: new Deadline(clock, timeoutMs, (passedMs) => over.push(passedMs), cameAtMs) };
}

function question() {
  const replies: ClientReply[] = [];
  const answer = (reply: ClientReply) => void replies.push(reply);
  return { replies, asked: { kind: 'request', method: 'roots/list', params: {}, answer } as const };
}
