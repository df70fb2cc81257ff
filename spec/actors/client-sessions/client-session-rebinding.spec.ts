// What happens to a session when the place where it stands is lost, and how it comes to the next one. Whether it may go
// there is in client-session-failover.spec.ts, which calls are repeated then in client-session-call.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { SessionFailover } from '../../../src/domain/policy.ts';
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

const test = suite('client session: place');
let stage = new SessionHarness();
simulateTime(test, () => stage.close());

test('goes on elsewhere when the conversation that was its own has ended', async () => {
  stage = new SessionHarness();
  await stage.add('a');
  await stage.add('b');
  const session = await stage.open(ASKABLE);
  stage.upstreams('a')[0]?.lose();
  assert.is(await resultOf(ask(session, 'read')), 'b');
  assert.is(stage.upstreams('b')[0]?.isClosed, false);
  assert.is(stage.transport('a').isClosed, false);
});

test('has a new conversation with the same instance when there is no other', async () => {
  stage = new SessionHarness();
  await stage.add('a', { fields: HTTP });
  const session = await stage.open();
  stage.upstreams('a')[0]?.lose();
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.equal(
    stage.upstreams('a').map(({ isClosed }) => isClosed),
    [true, false],
  );
});

test('goes on with the process that was started in place of its own', async () => {
  stage = new SessionHarness();
  await stage.add('a');
  const session = await stage.open();
  stage.transport('a').lose();
  await settled();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  mock.timers.tick(1_000);
  await settled();
  assert.is(stage.ref('a').state, 'healthy');
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test('waits, although it may not move, while its conversation stands and nobody else is there', async () => {
  stage = new SessionHarness({ policy: { sessionFailover: 'never' } });
  await stage.add('a');
  const session = await stage.open();
  stage.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  assert.is(stage.sessions.find(session.id), session);
  stage.ref('a').resume();
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test('says of a gateway that stops that it does, and nothing of its instances', async () => {
  for (const sessionFailover of ['auto', 'never'] as const) {
    stage = new SessionHarness({ policy: { sessionFailover } });
    await stage.add('a', { script: () => undefined });
    const session = await stage.open();
    const slow = ask(session, 'write');
    stage.inner.isAccepting = false;
    stage.ref('a').leave(25_000);
    assert.is(codeOf(await ask(session, 'read').end), 'SHUTTING_DOWN');
    stage.transport('a').last.result('slow');
    assert.is(await resultOf(slow), 'slow');
    await stage.close();
  }
});

test('tells those who wait for a place when the gateway stops that it does', async () => {
  stage = new SessionHarness();
  await stage.add('a', { fields: HTTP });
  const session = await stage.open();
  await stage.add('b', { fields: HTTP });
  stage.transport('b').openUpstream = () => new Promise(() => {});
  stage.ref('a').drain();
  const waiting = ask(session, 'read');
  stage.inner.isAccepting = false;
  void stage.sessions.closeAll(0);
  mock.timers.tick(1);
  assert.is(codeOf(await waiting.end), 'SHUTTING_DOWN');
});

test('moves once for all who wait for it', async () => {
  stage = new SessionHarness();
  await stage.add('a', { fields: HTTP });
  const session = await stage.open();
  await stage.add('b', { fields: HTTP });
  stage.ref('a').drain();
  const results = await Promise.all(Array.from({ length: 20 }, () => resultOf(ask(session, 'read'))));
  assert.equal(new Set(results), new Set(['b']));
  assert.is(stage.upstreams('b').length, 1);
});

test('lets calls under way finish where they are, and closes its conversation there after them', async () => {
  const a = { fields: HTTP, script: () => undefined };
  stage = new SessionHarness();
  await stage.add('a', a);
  const session = await stage.open();
  await stage.add('b', { fields: HTTP });
  const slow = ask(session, 'read');
  stage.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'b');
  const [old] = stage.upstreams('a');
  assert.is(old?.isClosed, false);
  old?.last.result('slow');
  assert.is(await resultOf(slow), 'slow');
  assert.is(old?.isClosed, true);
});

test('tries the next instance when one takes no conversation, and tells of the last in the end', async () => {
  stage = new SessionHarness();
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) await stage.add(id, { fields: HTTP });
  const session = await stage.open();
  for (const id of ['b', 'c']) {
    stage.transport(id).thrownByOpenUpstream = backendUnavailable('full', { delivered: 'no' });
  }
  stage.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'd');
  stage.transport('d').lose();
  await settled();
  const end = await ask(session, 'read').end;
  assert.is(codeOf(end), 'BACKEND_UNAVAILABLE');
  stage.transport('c').thrownByOpenUpstream = undefined;
  assert.is(await resultOf(ask(session, 'read')), 'c');
});

test('waits for a move no longer than for an answer, and closes what came too late', async () => {
  stage = new SessionHarness({ policy: { callTimeoutMs: 5_000 } });
  await stage.add('a', { fields: HTTP });
  const session = await stage.open();
  await stage.add('b', { fields: HTTP });
  const slow = stage.transport('b');
  const opened = slow.openUpstream.bind(slow);
  const { promise, resolve } = Promise.withResolvers<void>();
  slow.openUpstream = async (profile) => {
    await promise;
    return opened(profile, new AbortController().signal);
  };
  stage.ref('a').drain();
  const call = ask(session, 'read');
  mock.timers.tick(5_000);
  assert.is(codeOf(await call.end), 'BACKEND_TIMEOUT');
  resolve();
  await settled();
  assert.is(slow.upstreams[0]?.isClosed, true);
  slow.openUpstream = opened;
  assert.is(await resultOf(ask(session, 'read')), 'b');
});

test('leaves half of its time to another HTTP instance when one opens nothing', async () => {
  stage = new SessionHarness({ policy: { callTimeoutMs: 4_000 } });
  for (const id of ['a', 'b', 'c']) await stage.add(id, { fields: HTTP });
  const signals = freeze('a');
  const opening = stage.open();
  await settled();
  mock.timers.tick(LIMITS.handshakeMs / 2);
  const session = await opening;
  assert.is(signals[0]?.aborted, true);
  assert.is(await resultOf(ask(session, 'read')), 'b');
  freeze('c');
  stage.ref('a').drain();
  await stage.add('d', { fields: HTTP });
  stage.ref('b').drain();
  const call = ask(session, 'read');
  await settled();
  mock.timers.tick(2_000);
  assert.is(await resultOf(call), 'd');
});

test('waits all of its time for a program, or where there is nobody else', async () => {
  stage = new SessionHarness({ policy: { session: 'isolated', maxRetries: 1 } });
  for (const id of ['a', 'b']) await stage.add(id);
  const programs = ['a', 'b'].map((id) => freeze(id));
  const late = stage.open().catch(codeOf);
  await settled();
  mock.timers.tick(LIMITS.handshakeMs - 1);
  await settled();
  assert.equal(
    programs.flat().map(({ aborted }) => aborted),
    [false],
  );
  mock.timers.tick(1);
  assert.is(await late, 'BACKEND_TIMEOUT');
});

test('moves at once while its client listens, and stays with its listener', async () => {
  stage = new SessionHarness();
  await stage.add('a', { peer: FULL });
  const session = await stage.open();
  const heard = hear(session);
  await stage.add('b', { peer: FULL });
  stage.transport('a').lose();
  await settled();
  stage.transport('b').tell('notifications/tools/list_changed');
  assert.is(heard.messages.length, 1);
  assert.is(session.peer, stage.transport('b').peer);
});

test('looks again and again for a place while its client listens', async () => {
  stage = new SessionHarness();
  await stage.add('a', { peer: FULL });
  const session = await stage.open();
  const heard = hear(session);
  stage.ref('a').drain();
  await settled();
  await stage.add('b', { peer: FULL });
  mock.timers.tick(5_000);
  await settled();
  stage.transport('b').tell('notifications/tools/list_changed');
  assert.is(heard.messages.length, 1);
});

test('ends at once while its client listens, when it may not move', async () => {
  const session = await openOnA('never');
  const heard = hear(session);
  stage.transport('a').lose();
  await settled();
  assert.is(heard.isOver, true);
  assert.is(stage.sessions.size, 0);
});

test('refuses to let more than so many wait for a move', async () => {
  stage = new SessionHarness();
  await stage.add('a', { fields: HTTP });
  const session = await stage.open();
  await stage.add('b', { fields: HTTP });
  stage.ref('a').drain();
  const calls = Array.from({ length: 257 }, () => ask(session, 'read'));
  assert.is(codeOf(await calls[256]?.end), 'QUEUE_FULL');
  assert.is(await resultOf(calls[255] ?? ask(session, 'read')), 'b');
});

test('is ended while it moves without leaving anything behind', async () => {
  stage = new SessionHarness();
  await stage.add('a', { fields: HTTP });
  const session = await stage.open();
  await stage.add('b', { fields: HTTP });
  stage.ref('a').drain();
  const call = ask(session, 'read');
  await session.close();
  assert.is(codeOf(await call.end), 'SESSION_NOT_FOUND');
  await settled();
  for (const upstream of [...stage.upstreams('a'), ...stage.upstreams('b')]) {
    assert.is(upstream.isClosed, true);
  }
});

test.run();

/** A session on `a`, with `b` beside it. */
async function openOnA(sessionFailover: SessionFailover): Promise<ClientSession> {
  stage = new SessionHarness({ policy: { sessionFailover } });
  await stage.add('a', { peer: FULL, script: answers('a') });
  const session = await stage.open(PLAIN);
  await stage.add('b', { peer: FULL, script: answers('b') });
  return session;
}

/** From now on no conversation is opened with an instance; the signals of the openings, as they come. */
function freeze(id: string): AbortSignal[] {
  const signals: AbortSignal[] = [];
  stage.transport(id).openUpstream = (_, signal) => {
    signals.push(signal);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(backendUnavailable('called off', { delivered: 'no' })));
    });
  };
  return signals;
}

function codeOf(end: string | Error | undefined): string {
  return end instanceof Error && 'code' in end ? String(end.code) : String(end);
}
