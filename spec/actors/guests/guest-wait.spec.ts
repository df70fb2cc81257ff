// How long a call waits for its conversation. What it does then is in stateless clients.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Conversation } from '../../../src/actors/instances/conversation.ts';
import { leftMs, opened } from '../../../src/actors/stateless/stateless-wait.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { alarm, settled } from './guest-stage.ts';

const test = suite('guests: wait');
const clock = { now: () => Date.now(), alarm };
const TIME = { cameAtMs: 1_000, timeoutMs: 4_000 };

test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 2_000 }));
test.after.each(() => mock.timers.reset());

test('knows what is left of the time of a call', () => {
  assert.is(leftMs(clock, TIME), 3_000);
  mock.timers.tick(3_001);
  assert.is(leftMs(clock, TIME), -1);
});

for (const [what, isSpare, waitMs] of [
  ['all that is left of its time', false, 3_000],
  ['half of it where there is somebody else', true, 1_500],
] as const) {
  test(`waits ${what}`, () => {
    const { heard } = wait(isSpare);
    mock.timers.tick(waitMs - 1);
    assert.equal(heard, []);
    mock.timers.tick(1);
    assert.equal(heard, [`BACKEND_TIMEOUT no after ${(waitMs + 1_000) / 1_000} s`]);
  });
}

test('is told of the conversation, and of nothing after that', async () => {
  const { opening, upstream, heard } = wait(false);
  opening.resolve(upstream);
  await settled();
  mock.timers.tick(10_000);
  assert.equal(heard, ['open']);
});

test('is told why there is none', async () => {
  const { opening, heard } = wait(false);
  opening.reject(Object.assign(new Error('refused'), { code: 'X', delivered: 'no' }));
  await settled();
  mock.timers.tick(10_000);
  assert.equal(heard, ['X no after  s']);
});

test('who leaves hears nothing', async () => {
  const { subscription, heard } = wait(false);
  subscription.unsubscribe();
  mock.timers.tick(10_000);
  assert.equal(heard, []);
});

test.run();

function wait(isSpare: boolean) {
  const opening = Promise.withResolvers<Upstream>();
  const nothing = () => undefined;
  const conversation = new Conversation(clock, {
    ownerId: 'ann',
    isExclusive: false,
    isHeard: false,
    idleMs: LIMITS.guestIdleMs,
    open: () => opening.promise,
    listener: { opened: nothing, ended: nothing, retired: nothing, gone: nothing },
  });
  const heard: string[] = [];
  const subscription = opened(conversation, undefined, clock, TIME, isSpare).subscribe({
    next: () => heard.push('open'),
    error: ({ code, delivered, message }) =>
      heard.push(`${code} ${delivered} after ${/[\d.]+(?= s)/.exec(message)?.[0] ?? ''} s`),
  });
  return { opening, subscription, heard, upstream: new ScriptedTransport() };
}
