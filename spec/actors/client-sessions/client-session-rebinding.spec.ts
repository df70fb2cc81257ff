// What happens to a session when the place where it stands is lost, and how it comes to the next one. Whether it may go
// there is in client-session-failover.spec.ts, which calls are repeated then in client-session-call.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { SessionFailover } from '../../../src/domain/policy.ts';
import { suite } from '../../helpers/suite.ts';
import { answers, ask, FULL, HTTP, hear, PLAIN, resultOf, SessionHarness, settled, simulateTime } from './client-session-harness.ts';

const test = suite('client session: place');
let harness = new SessionHarness();
simulateTime(test, () => harness.close());

test('goes on with the process that was started in place of its own', async () => {
  harness = new SessionHarness();
  await harness.add('a');
  const session = await harness.open();
  harness.transport('a').lose();
  await settled();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  mock.timers.tick(1_000);
  await settled();
  assert.is(harness.ref('a').state, 'healthy');
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test('waits, although it may not move, while its conversation stands and nobody else is there', async () => {
  harness = new SessionHarness({ policy: { sessionFailover: 'never' } });
  await harness.add('a');
  const session = await harness.open();
  harness.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  assert.is(harness.sessions.find(session.id), session);
  harness.ref('a').resume();
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test('says of a gateway that stops that it does, and nothing of its instances', async () => {
  for (const sessionFailover of ['auto', 'never'] as const) {
    harness = new SessionHarness({ policy: { sessionFailover } });
    await harness.add('a', { script: () => undefined });
    const session = await harness.open();
    const slow = ask(session, 'write');
    harness.inner.isAccepting = false;
    harness.ref('a').leave(25_000);
    assert.is(codeOf(await ask(session, 'read').end), 'SHUTTING_DOWN');
    harness.transport('a').last.result('slow');
    assert.is(await resultOf(slow), 'slow');
    await harness.close();
  }
});

test('tries the next instance when one takes no conversation, and tells of the last in the end', async () => {
  harness = new SessionHarness();
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) await harness.add(id, { fields: HTTP });
  const session = await harness.open();
  for (const id of ['b', 'c']) {
    harness.transport(id).thrownByOpenUpstream = backendUnavailable('full', { delivered: 'no' });
  }
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'd');
  harness.transport('d').lose();
  await settled();
  const end = await ask(session, 'read').end;
  assert.is(codeOf(end), 'BACKEND_UNAVAILABLE');
  harness.transport('c').thrownByOpenUpstream = undefined;
  assert.is(await resultOf(ask(session, 'read')), 'c');
});

test('leaves half of its time to another HTTP instance when one opens nothing', async () => {
  harness = new SessionHarness({ policy: { callTimeoutMs: 4_000 } });
  for (const id of ['a', 'b', 'c']) await harness.add(id, { fields: HTTP });
  const signals = freeze('a');
  const opening = harness.open();
  await settled();
  mock.timers.tick(LIMITS.handshakeMs / 2);
  const session = await opening;
  assert.is(signals[0]?.aborted, true);
  assert.is(await resultOf(ask(session, 'read')), 'b');
  freeze('c');
  harness.ref('a').drain();
  await harness.add('d', { fields: HTTP });
  harness.ref('b').drain();
  const call = ask(session, 'read');
  await settled();
  mock.timers.tick(2_000);
  assert.is(await resultOf(call), 'd');
});

test('waits all of its time for a program, or where there is nobody else', async () => {
  harness = new SessionHarness({ policy: { session: 'isolated', maxRetries: 1 } });
  for (const id of ['a', 'b']) await harness.add(id);
  const programs = ['a', 'b'].map((id) => freeze(id));
  const late = harness.open().catch(codeOf);
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

test('looks again and again for a place while its client listens', async () => {
  harness = new SessionHarness();
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  const heard = hear(session);
  harness.ref('a').drain();
  await settled();
  await harness.add('b', { peer: FULL });
  mock.timers.tick(5_000);
  await settled();
  harness.transport('b').tell('notifications/tools/list_changed');
  assert.is(heard.messages.length, 1);
});

test('ends at once while its client listens, when it may not move', async () => {
  const session = await openOnA('never');
  const heard = hear(session);
  harness.transport('a').lose();
  await settled();
  assert.is(heard.isOver, true);
  assert.is(harness.sessions.size, 0);
});

test('refuses to let more than so many wait for a move', async () => {
  harness = new SessionHarness();
  await harness.add('a', { fields: HTTP });
  const session = await harness.open();
  await harness.add('b', { fields: HTTP });
  harness.ref('a').drain();
  const calls = Array.from({ length: 257 }, () => ask(session, 'read'));
  assert.is(codeOf(await calls[256]?.end), 'QUEUE_FULL');
  assert.is(await resultOf(calls[255] ?? ask(session, 'read')), 'b');
});

test.run();

/** A session on `a`, with `b` beside it. */
async function openOnA(sessionFailover: SessionFailover): Promise<ClientSession> {
  harness = new SessionHarness({ policy: { sessionFailover } });
  await harness.add('a', { peer: FULL, script: answers('a') });
  const session = await harness.open(PLAIN);
  await harness.add('b', { peer: FULL, script: answers('b') });
  return session;
}

/** From now on no conversation is opened with an instance; the signals of the openings, as they come. */
function freeze(id: string): AbortSignal[] {
  const signals: AbortSignal[] = [];
  harness.transport(id).openUpstream = (_, signal) => {
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
