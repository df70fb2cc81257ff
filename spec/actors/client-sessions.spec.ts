// The table of all sessions: how many, for how long, and what is left when they are gone.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../src/actors/client-session.ts';
import { backendUnavailable } from '../../src/domain/errors.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { suite } from '../helpers/suite.ts';
import {
  ASKABLE,
  answers,
  ask,
  FULL,
  HTTP,
  hear,
  PLAIN,
  resultOf,
  SessionStage,
  settled,
  simulateTime,
} from './client-session-stage.ts';

const test = suite('client sessions');
let stage = new SessionStage();
simulateTime(
  test,
  () => stage.close(),
  () => {
    stage = new SessionStage({ maxSessions: 50 });
  },
);

test('spreads sessions over the instances by the strategy', async () => {
  for (const id of ['a', 'b', 'c']) await stage.add(id);
  const sessions = await openAll(9);
  const homes = await Promise.all(sessions.map((session) => resultOf(ask(session, 'read'))));
  for (const id of ['a', 'b', 'c']) assert.is(homes.filter((home) => home === id).length, 3);
});

test('finds a session by its id until it is closed', async () => {
  await stage.add('a');
  const session = await stage.open();
  assert.is(stage.sessions.find(session.id), session);
  assert.is(stage.sessions.find('no such id'), undefined);
  await stage.sessions.close(session.id);
  await stage.sessions.close(session.id);
  assert.is(stage.sessions.find(session.id), undefined);
  assert.is(stage.sessions.size, 0);
});

test('opens on the next instance when one refuses, and tells the last failure when all do', async () => {
  for (const id of ['a', 'b']) await stage.add(id, { fields: HTTP });
  const failure = backendUnavailable('no room', { delivered: 'no' });
  stage.transport('a').thrownByOpenUpstream = failure;
  for (const session of await openAll(4)) assert.is(await resultOf(ask(session, 'read')), 'b');
  stage.transport('b').thrownByOpenUpstream = failure;
  assert.is(await codeOf(stage.open()), 'BACKEND_UNAVAILABLE');
  assert.is(stage.sessions.size, 4);
});

test('says why no session can be opened', async () => {
  assert.is(await codeOf(stage.sessions.open('nothing', 'x', PLAIN)), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(stage.open()), 'NO_HEALTHY_INSTANCE');
  await stage.add('a');
  stage.inner.isAccepting = false;
  assert.is(await codeOf(stage.open()), 'SHUTTING_DOWN');
  assert.is(stage.sessions.size, 0);
});

test('gives up an opening that takes too long', async () => {
  await stage.add('a', { fields: HTTP });
  stage.transport('a').openUpstream = () => new Promise(() => undefined);
  const opening = codeOf(stage.open());
  await settled();
  assert.is(stage.sessions.size, 1);
  mock.timers.tick(LIMITS.handshakeMs);
  assert.is(await opening, 'BACKEND_TIMEOUT');
  assert.is(stage.sessions.size, 0);
});

test('opens one where all instances are full: a session is no call', async () => {
  const ref = await stage.add('a', { script: () => undefined });
  const session = await stage.open();
  const calls = Array.from({ length: ref.capacity }, () => ask(session, 'read'));
  assert.is(ref.inFlight, ref.capacity);
  assert.is((await stage.open()).isShared, true);
  for (const { subscription } of calls) subscription.unsubscribe();
});

test('takes no more than its limit, and puts nobody out who is in use', async () => {
  await stage.add('a');
  const sessions = await openAll(50);
  assert.is(await codeOf(stage.open()), 'SESSION_LIMIT');
  mock.timers.tick(LIMITS.sessionIdleMs - 1);
  assert.is(await codeOf(stage.open()), 'SESSION_LIMIT');
  await sessions[0]?.close();
  await stage.open();
  assert.is(stage.sessions.size, 50);
});

test('parks who rests, and goes on with him at his next message', async () => {
  await stage.add('a');
  const session = await stage.open();
  await rest();
  assert.is(stage.sessions.parked, 1);
  assert.is(stage.sessions.find(session.id), session);
  assert.is(stage.sessions.parked, 1);
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.is(stage.sessions.parked, 0);
  await rest();
  session.notify('notifications/custom', {});
  assert.is(stage.sessions.parked, 0);
  await rest();
  const release = session.hold();
  await rest();
  assert.is(stage.sessions.parked, 0);
  release();
  await rest();
  assert.is(stage.sessions.parked, 1);
});

test('keeps what a parked session has at its backend', async () => {
  await stage.add('a', { peer: FULL, script: answers({}) });
  const session = await stage.open(ASKABLE);
  await resultOf(ask(session, { method: 'logging/setLevel', params: { level: 'info' } }));
  await rest();
  const [own] = stage.upstreams('a');
  own?.tell('notifications/message', { data: 'said meanwhile' });
  assert.is(stage.sessions.parked, 1);
  assert.is(own?.isClosed, false);
  assert.is(session.logLevel, 'info');
  assert.is(hear(session).messages.length, 1);
});

test('goes on elsewhere with a parked session whose instance died', async () => {
  await stage.add('a');
  const session = await stage.open();
  await stage.add('b');
  await rest();
  stage.transport('a').lose();
  await settled();
  assert.is(stage.sessions.parked, 1);
  assert.is(await resultOf(ask(session, 'read')), 'b');
});

test('ends who was not used for too long, at its backend, too', async () => {
  await stage.add('a', { fields: HTTP });
  const [idle, busy] = [await stage.open(), await stage.open()];
  const release = busy.hold();
  const ends: string[] = [];
  idle.ended$.subscribe((reason) => ends.push(reason));
  await pass(LIMITS.sessionIdleMs);
  assert.equal(ends, ['nobody used it for too long']);
  assert.equal(
    stage.upstreams('a').map(({ isClosed }) => isClosed),
    [true, false],
  );
  assert.is(stage.sessions.find(busy.id), busy);
  release();
  await pass(LIMITS.sessionIdleMs - 1_000);
  assert.is(stage.sessions.size, 1);
  await pass(LIMITS.sessionParkMs + 2_000);
  assert.is(stage.sessions.size, 0);
});

test('ends who listens and was not used for too long; until then it hears what is said', async () => {
  await stage.add('a', { peer: FULL });
  const session = await stage.open();
  await resultOf(ask(session, 'read'));
  const heard = hear(session);
  await pass(LIMITS.sessionIdleMs - 1_000);
  stage.transport('a').tell('notifications/tools/list_changed');
  assert.equal([stage.sessions.size, heard.messages.length, heard.isOver], [1, 1, false]);
  await pass(2_000);
  assert.equal([stage.sessions.size, heard.isOver], [0, true]);
});

test('does not count it as use that a client stops listening', async () => {
  await stage.add('a', { peer: FULL });
  const session = await stage.open();
  const heard = hear(session);
  await pass(LIMITS.sessionIdleMs - 1_000);
  heard.subscription.unsubscribe();
  await pass(2_000);
  assert.is(stage.sessions.size, 0);
});

test('goes on with a session that was parked while its client listened, and stopped', async () => {
  await stage.add('a', { peer: FULL });
  const session = await stage.open();
  const heard = hear(session);
  await rest();
  assert.is(stage.sessions.parked, 1);
  heard.subscription.unsubscribe();
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.is(stage.sessions.parked, 0);
});

test('counts from the last message', async () => {
  await stage.add('a');
  const session = await stage.open();
  for (let time = 0; time < 5; time += 1) {
    await pass(LIMITS.sessionIdleMs - 10_000);
    session.notify('notifications/custom', {});
  }
  assert.is(stage.sessions.size, 1);
});

test('has one timer for all of them', async () => {
  await stage.add('a');
  await openAll(50);
  await pass(LIMITS.sessionParkMs + 5_000);
  assert.is(stage.sessions.parked, 50);
  assert.ok(stage.alarms < 5, `${stage.alarms} timers were set`);
});

test('lets calls finish within the grace when it closes, and ends the others at once', async () => {
  await stage.add('a', { fields: HTTP, script: () => undefined });
  const [busy, idle, slow] = await openAll(3);
  if (busy === undefined || idle === undefined || slow === undefined) throw new Error('not opened');
  const calls = [ask(busy, 'read'), ask(slow, 'read')];
  assert.is(stage.sessions.calling, 2);
  const closed = stage.sessions.closeAll(10_000);
  assert.is(stage.sessions.size, 2);
  assert.is(await codeOf(stage.open()), 'SHUTTING_DOWN');
  stage.upstreams('a')[0]?.last.result('done');
  assert.is(await resultOf(calls[0] ?? ask(busy, 'read')), 'done');
  assert.is(stage.sessions.size, 1);
  mock.timers.tick(10_000);
  await closed;
  assert.is(stage.sessions.size, 0);
  assert.is((await calls[1]?.end) instanceof Error, true);
  for (const { isClosed } of stage.upstreams('a')) assert.is(isClosed, true);
});

test('calls off what is being opened when it closes', async () => {
  await stage.add('a', { fields: HTTP });
  stage.transport('a').openUpstream = () => new Promise(() => undefined);
  const opening = codeOf(stage.open());
  await settled();
  await stage.sessions.closeAll(0);
  assert.is(await opening, 'SHUTTING_DOWN');
});

test('leaves nothing with the instances after a thousand sessions came and went', async () => {
  await stage.close();
  stage = new SessionStage();
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) {
    await stage.add(id, { peer: FULL, script: answers({}), fields: id > 'b' ? HTTP : {} });
  }
  for (let n = 0; n < 1_000; n += 1) {
    const session = await stage.open(n % 5 === 0 ? ASKABLE : PLAIN, `owner ${n}`);
    hear(session);
    await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: `x:${n % 7}` } }));
    await session.close();
  }
  await settled();
  assert.is(stage.sessions.size, 0);
  assert.is(stage.sessions.pinning.shared.size, 0);
  assert.is(stage.subscriptions.size, 0);
  for (const id of ids) {
    assert.is(stage.ref(id).inFlight, 0);
    // Its own session listens to its conversation; nobody else does any more.
    assert.is(stage.transport(id).listeners, 1);
    for (const upstream of stage.upstreams(id)) {
      assert.equal([upstream.isClosed, upstream.listeners], [true, 0]);
    }
  }
});

test.run();

async function openAll(count: number): Promise<ClientSession[]> {
  const sessions = [];
  for (let n = 0; n < count; n += 1) sessions.push(await stage.open(PLAIN, `owner ${n % 5}`));
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

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    (thrown: unknown) => (thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown)),
  );
}
