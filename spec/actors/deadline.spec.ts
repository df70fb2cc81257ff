// The time of one call, by itself. How it ends a call is in call-deadline.spec.ts. Time passes only when the spec says so.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Deadline } from '../../src/actors/deadline.ts';
import type { ClientReply } from '../../src/domain/client.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { alarm } from '../../src/gateway/alarm.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('deadline');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
test.after.each(() => mock.timers.reset());

const REPLY: ClientReply = { result: {} };

test('is over once, after the time it was given', () => {
  const { over } = make(5_000);
  mock.timers.tick(4_999);
  assert.equal(over, []);
  mock.timers.tick(1);
  assert.equal(over, [5_000]);
  mock.timers.tick(100_000);
  assert.is(over.length, 1);
});

test('begins anew when something is heard, up to the hard maximum', () => {
  const { deadline, over } = make(5_000);
  for (let passedMs = 0; passedMs < LIMITS.callLongestMs; passedMs += 4_000) {
    assert.equal(over, []);
    deadline.heard();
    mock.timers.tick(4_000);
  }
  assert.equal(over, [LIMITS.callLongestMs]);
});

test('is never over once it has ended', () => {
  const { deadline, over } = make(5_000);
  deadline.end();
  mock.timers.tick(1_000_000);
  assert.equal(over, []);
});

test('stands still while the client is asked, and begins anew with its answer', () => {
  const { deadline, over } = make(5_000);
  const { asked, replies } = question();
  mock.timers.tick(4_000);
  const standing = deadline.standStillFor(asked);
  mock.timers.tick(60_000);
  standing.answer(REPLY);
  standing.answer(REPLY);
  assert.equal([over, replies], [[], [REPLY]]);
  mock.timers.tick(4_999);
  assert.equal(over, []);
  mock.timers.tick(1);
  assert.equal(over, [69_000]);
});

test('stands still until the last of several questions is answered', () => {
  const { deadline, over } = make(5_000);
  const [one, two] = [question(), question()].map(({ asked }) => deadline.standStillFor(asked));
  mock.timers.tick(60_000);
  one?.answer(REPLY);
  one?.answer(REPLY);
  mock.timers.tick(60_000);
  assert.equal(over, []);
  two?.answer(REPLY);
  mock.timers.tick(5_000);
  assert.equal(over, [125_000]);
});

test('keeps the hard maximum while the client is asked', () => {
  const { deadline, over } = make(5_000);
  deadline.standStillFor(question().asked);
  mock.timers.tick(LIMITS.callLongestMs - 1);
  assert.equal(over, []);
  mock.timers.tick(1);
  assert.equal(over, [LIMITS.callLongestMs]);
});

test('passes an answer on that comes after the end, and waits for nothing any more', () => {
  const { deadline, over } = make(5_000);
  const { asked, replies } = question();
  const standing = deadline.standStillFor(asked);
  deadline.end();
  standing.answer(REPLY);
  mock.timers.tick(1_000_000);
  assert.equal([over, replies], [[], [REPLY]]);
});

test.run();

function make(timeoutMs: number) {
  const over: number[] = [];
  return {
    over,
    deadline: new Deadline({ now: () => Date.now(), alarm }, timeoutMs, (passedMs) => over.push(passedMs)),
  };
}

function question() {
  const replies: ClientReply[] = [];
  const answer = (reply: ClientReply) => void replies.push(reply);
  return { replies, asked: { kind: 'request', method: 'roots/list', params: {}, answer } as const };
}
