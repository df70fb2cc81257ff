// How long sessions may go unused: who rests is parked, and goes on; who is not used for too long is ended.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  answers,
  ask,
  FULL,
  HTTP,
  hear,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client sessions: unused');
let harness = new SessionHarness();
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness({ maxSessions: 50 });
  },
);

test('parks who rests, and goes on with him at his next message', async () => {
  await harness.add('a');
  const session = await harness.open();
  await rest();
  assert.is(harness.sessions.parked, 1);
  assert.is(harness.sessions.find(session.id), session);
  assert.is(harness.sessions.parked, 1);
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.is(harness.sessions.parked, 0);
  await rest();
  session.notify('notifications/custom', {});
  assert.is(harness.sessions.parked, 0);
  await rest();
  const release = session.hold();
  await rest();
  assert.is(harness.sessions.parked, 0);
  release();
  await rest();
  assert.is(harness.sessions.parked, 1);
});

test('keeps what a parked session has at its backend', async () => {
  await harness.add('a', { peer: FULL, script: answers({}) });
  const session = await harness.open(ASKABLE);
  await resultOf(ask(session, { method: 'logging/setLevel', params: { level: 'info' } }));
  await rest();
  const [own] = harness.upstreams('a');
  own?.tell('notifications/message', { data: 'said meanwhile' });
  assert.is(harness.sessions.parked, 1);
  assert.is(own?.isClosed, false);
  assert.is(session.logLevel, 'info');
  assert.is(hear(session).messages.length, 1);
});

test('goes on elsewhere with a parked session whose instance died', async () => {
  await harness.add('a');
  const session = await harness.open();
  await harness.add('b');
  await rest();
  harness.transport('a').lose();
  await settled();
  assert.is(harness.sessions.parked, 1);
  assert.is(await resultOf(ask(session, 'read')), 'b');
});

test('ends who was not used for too long, at its backend, too', async () => {
  await harness.add('a', { fields: HTTP });
  const [idle, busy] = [await harness.open(), await harness.open()];
  const release = busy.hold();
  const ends: string[] = [];
  idle.ended$.subscribe((reason) => ends.push(reason));
  await pass(LIMITS.sessionIdleMs);
  assert.equal(ends, ['it was idle for too long']);
  assert.equal(
    harness.upstreams('a').map(({ isClosed }) => isClosed),
    [true, false],
  );
  assert.is(harness.sessions.find(busy.id), busy);
  release();
  await pass(LIMITS.sessionIdleMs - 1_000);
  assert.is(harness.sessions.size, 1);
  await pass(LIMITS.sessionParkMs + 2_000);
  assert.is(harness.sessions.size, 0);
});

test('ends who listens and was not used for too long; until then it hears what is said', async () => {
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  await resultOf(ask(session, 'read'));
  const heard = hear(session);
  await pass(LIMITS.sessionIdleMs - 1_000);
  harness.transport('a').tell('notifications/tools/list_changed');
  assert.equal([harness.sessions.size, heard.messages.length, heard.isOver], [1, 1, false]);
  await pass(2_000);
  assert.equal([harness.sessions.size, heard.isOver], [0, true]);
});

test('does not count it as use that a client stops listening', async () => {
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  const heard = hear(session);
  await pass(LIMITS.sessionIdleMs - 1_000);
  heard.subscription.unsubscribe();
  await pass(2_000);
  assert.is(harness.sessions.size, 0);
});

test('counts from the last message', async () => {
  await harness.add('a');
  const session = await harness.open();
  for (let time = 0; time < 5; time += 1) {
    await pass(LIMITS.sessionIdleMs - 10_000);
    session.notify('notifications/custom', {});
  }
  assert.is(harness.sessions.size, 1);
});

test('has one timer for all of them', async () => {
  await harness.add('a');
  await openAll(50);
  await pass(LIMITS.sessionParkMs + 5_000);
  assert.is(harness.sessions.parked, 50);
  assert.ok(harness.alarms < 5, `${harness.alarms} timers were set`);
});

test.run();

async function openAll(count: number): Promise<ClientSession[]> {
  const sessions = [];
  for (let n = 0; n < count; n += 1) sessions.push(await harness.open(PLAIN, `owner ${n % 5}`));
  return sessions;
}

/** Long enough for everybody who rests to be parked. */
async function rest(): Promise<void> {
  await pass(2 * LIMITS.sessionParkMs + 2_000);
}

async function pass(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settled();
}
