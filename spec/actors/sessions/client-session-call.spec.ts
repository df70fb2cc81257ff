// Calls of a session: where they go, when they are repeated, and the calls that are under way together.

import { mock } from 'node:test';
import { firstValueFrom, map, type Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import { DEFAULT_POLICY, type TemplatePolicy } from '../../../src/balancing/policy.ts';
import type { SourcedEvent } from '../../../src/domain/calls/exchange.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import { nodeUnavailable } from '../../../src/domain/errors/node-errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { ClientProfile } from '../../../src/domain/mcp/client.ts';
import {
  answers,
  ask,
  errorView,
  fails,
  Harness,
  listen,
  resultOf,
  silent,
  undelivered,
} from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL_MODERN, HTTP, PLAIN, toolCall } from '../../helpers/backends/profiles.ts';
import type { ScriptedExchange } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

type Reservation = ReturnType<ClientSession['reserve']>;
const test = suite('client session: calls');
let harness = new Harness();

simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(() => harness.close());

for (const [tool, failover, isRepeated] of [
  ['read', 'auto', true],
  ['again', 'auto', true],
  ['write', 'auto', false],
  ['read', 'always', true],
  ['write', 'always', false],
  ['read', 'never', false],
] as const) {
  const outcome = isRepeated ? 'is repeated' : 'fails';
  test(`a call of "${tool}" that may have arrived ${outcome} with failover ${failover}`, async () => {
    const session = await openOnA(failover);
    const call = ask(session, tool);
    harness.backend('a').disconnect();
    await judged();
    if (isRepeated) assert.is(await resultOf(call), 'b');
    else assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
    assert.is(harness.eventsOf('call.retried').length, isRepeated ? 1 : 0);
    const attempts = harness.attempts().filter((event) => event.tool === tool);
    const found = attempts.map(({ attempt }) => attempt);
    assert.equal(found, isRepeated ? [1, 2] : [1]);
    const calls = new Set(attempts.map(({ call }) => call));
    const started = harness.eventsOf('call.started').filter((event) => calls.has(event.call));
    assert.equal([calls.size, started.length], [1, 1], 'it is one call');
  });
}

test('a task request is refused where clients share a process', async () => {
  harness.setPolicy({ processSharing: 'shared' });
  await harness.add('a');
  const session = await harness.openSession();
  assert.is(await resultOf(ask(session, { method: 'tasks/get', params: { taskId: '1' } })), -32601);
  assert.equal([harness.backend('a').asked.includes('tasks/get'), session.isShared], [false, true]);
  await harness.close();
  harness = new Harness();
  await harness.add('a', { own: null });
  assert.is(await resultOf(ask(await harness.openSession(), { method: 'tasks/get' })), -32601);
});

for (const [failover, why] of [
  ['never', 'may not move'],
  ['auto', 'has no other instance'],
] as const) {
  test(`a call that breaks off twice fails when its session ${why}`, async () => {
    const session = await openOnA(failover, fails('unknown'));
    if (failover === 'auto') harness.ref('b').drain();
    const call = ask(session, 'read');
    await judged();
    assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
    assert.is(asked('a'), 2);
    assert.equal([session.instance.id, harness.sessions.list().length], ['a', 1]);
  });
}

test('a call that breaks off at every instance moves its session once', async () => {
  const session = await openOnA('auto', fails('unknown'), fails('unknown'));
  const call = ask(session, 'read');
  await judged();
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
  assert.equal([asked('a'), asked('b')], [2, 1]);
});

test('repeatable calls that are silent until their instance is ejected move with their session', async () => {
  harness.setPolicy({ callTimeoutMs: 30_000 });
  const session = await harness.openOnA({ script: silent });
  await harness.call('read', { instanceId: 'b' }).end; // it is known how long a call takes
  const calls = [0, 1, 2].map(() => ask(session, 'read'));
  await pass(9_900);
  assert.is(asked('b'), 1);
  assert.is(harness.fleet.templates.group('t').pool.outliers.isSuspended(harness.ref('a')), true);
  await pass(101);
  await judged();
  assert.equal(await Promise.all(calls.map(resultOf)), ['b', 'b', 'b']);
});

test('a silent call that is not safe to repeat stays at its instance when its session moves', async () => {
  harness.setPolicy({ callTimeoutMs: 30_000, sessionFailover: 'always' });
  const session = await harness.openOnA({ script: silent });
  await harness.call('read', { instanceId: 'b' }).end; // it is known how long a call takes
  const [write, ...reads] = ['write', 'read', 'read', 'read'].map((tool) => ask(session, tool));
  await pass(10_001);
  await judged();
  assert.equal(await Promise.all(reads.map(resultOf)), ['b', 'b', 'b']);
  assert.equal([write?.subscription.closed, asked('b')], [false, 4]);
  write?.subscription.unsubscribe();
});

test('a read that is silent for a third of its time is hedged at another instance, and its session stays', async () => {
  const session = await openOnA('auto');
  const call = ask(session, 'read');
  await pass(DEFAULT_POLICY.callTimeoutMs / 3 - 1);
  assert.equal([asked('a'), asked('b')], [1, 0]);
  await pass(1);
  assert.is(await resultOf(call), 'b');
  assert.equal([harness.backend('a').open, session.instance.id, session.callCount], [[], 'a', 0]);
  const retried = harness.eventsOf('call.retried').map(({ instanceId, code }) => `${instanceId} ${code}`);
  assert.equal(retried, ['a BACKEND_TIMEOUT']);
});

test('the first instance may answer such a read after all', async () => {
  const session = await openOnA('auto', silent, silent);
  const call = ask(session, 'read');
  await pass(DEFAULT_POLICY.callTimeoutMs / 3);
  assert.is(asked('b'), 1);
  harness
    .backend('a')
    .exchanges.find(({ isOpen }) => isOpen)
    ?.result('late');
  assert.is(await resultOf(call), 'late');
  assert.equal([...harness.backend('a').open, ...harness.backend('b').open], []);
});

test('a conversation that is opened for such a read is closed after it', async () => {
  harness.setPolicy({ callTimeoutMs: 900 });
  const session = await harness.openOnA({ script: silent, fields: HTTP }, { fields: HTTP });
  const call = ask(session, 'read');
  await pass(300);
  assert.is(await resultOf(call), 'b');
  await settled();
  const isClosed = ['a', 'b'].map((id) =>
    harness.conversations(id).map((conversation) => conversation.isClosed),
  );
  assert.equal([isClosed, session.instance.id], [[[false], [true]], 'a']);
});

test('with two instances that hang, a read with a short timeout is answered by the third in time', async () => {
  harness.setPolicy({ callTimeoutMs: 600 });
  const session = await harness.openOnA({ script: silent, fields: HTTP }, { fields: HTTP });
  harness.freeze('b');
  await harness.add('c', { fields: HTTP });
  const call = ask(session, 'read');
  await pass(200);
  await pass(200);
  assert.is(await resultOf(call), 'c');
});

for (const [why, sessionFailover, before] of [
  ['made a call that may not be repeated', 'auto', 'write'],
  ['may not move', 'never', undefined],
] as const) {
  test(`a silent read of a session that ${why} stays at its instance`, async () => {
    const session = await openOnA(sessionFailover);
    const earlier = before && ask(session, before);
    const call = ask(session, 'read');
    await pass(25_000);
    assert.is(asked('b'), 0);
    call.subscription.unsubscribe();
    earlier?.subscription.unsubscribe();
  });
}

test('what a session reads elsewhere is within the retry budget', async () => {
  harness.setPolicy({ callTimeoutMs: 6_000 });
  const session = await harness.openOnA({ script: silent }, { script: silent });
  const calls = Array.from({ length: 40 }, () => ask(session, 'read'));
  await pass(2_000);
  assert.is(asked('b'), 8 + 10, 'a fifth of the calls, and the allowance');
  for (const { subscription } of calls) subscription.unsubscribe();
});

test('a call that may have arrived is repeated only once', async () => {
  await harness.add('a', { script: silent });
  const session = await harness.openSession();
  for (const id of ['b', 'c']) await harness.add(id, { script: silent });
  const call = ask(session, 'read');
  harness.backend('a').disconnect();
  await judged();
  const second = harness.backend('b').open.length > 0 ? 'b' : 'c';
  harness.backend(second).disconnect();
  await judged();
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
});

test('a call that never arrives fails after three repeats', async () => {
  const session = await openOnA('always', fails('no'));
  const call = ask(session, 'write');
  await judged();
  assert.is(asked('a'), 4);
  assert.equal(errorView(await call.end), undelivered('BACKEND_UNAVAILABLE'));
});

for (const [outcome, wakes] of [
  ['goes on once the node knows that it still holds the session', 'a'],
  ['is not sent when another node has taken the session', 'over'],
  ['is not sent when the node does not learn that', 'unknown'],
] as const) {
  test(`the retry of a call that did not arrive before a freeze ${outcome}`, async () => {
    const held: ScriptedExchange[] = [];
    const session = await openOnA('always', (exchange) => held.push(exchange));
    const call = ask(session, 'write');
    await settled();
    const known = Promise.withResolvers<void>();
    harness.untilLifeKnown = () => known.promise;
    harness.rewrite('a', answers('a'));
    held[0]?.fail(backendUnavailable('it refused the connection', { delivered: 'no' }));
    await judged();
    assert.is(asked('a'), 1, 'nothing is sent while that is in doubt');
    if (wakes === 'over') await session.close();
    harness.untilLifeKnown = () => undefined;
    if (wakes === 'unknown') known.reject(nodeUnavailable('n', 'it does not know', 'no'));
    else known.resolve();
    await judged();
    if (wakes === 'a') assert.is(await resultOf(call), 'a');
    else assert.equal(errorView(await call.end), undelivered('BACKEND_UNAVAILABLE'));
    assert.is(asked('a'), wakes === 'a' ? 2 : 1);
  });
}

test('a call that waits for a connection may not be sent while it is in doubt whether the node holds its session', async () => {
  const held: ScriptedExchange[] = [];
  const session = await openOnA('always', (exchange) => held.push(exchange));
  const call = ask(session, 'write');
  await settled();
  const { request } = held[0] ?? {};
  assert.is(request?.mayBeSent?.(), true);
  harness.untilLifeKnown = () => new Promise(() => {});
  assert.is(request?.mayBeSent?.(), false);
  harness.untilLifeKnown = () => undefined;
  held[0]?.result({});
  await call.end;
});

test('an unsafe call that did not arrive does not keep the session from moving', async () => {
  const session = await openOnA('auto', fails('no'));
  const call = ask(session, 'write');
  await judged();
  assert.equal(errorView(await call.end), undelivered('BACKEND_UNAVAILABLE'));
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'b');
});

test('repeats of calls of sessions use the retry budget of the template', async () => {
  harness.setPolicy({ sessionFailover: 'always' });
  await harness.add('a', { script: silent });
  const sessions = [];
  for (let n = 0; n < 30; n += 1) sessions.push(await harness.openSession());
  await harness.add('b');
  const calls = sessions.map((session) => ask(session, 'read'));
  harness.backend('a').disconnect();
  await judged();
  const ends = await Promise.all(calls.map(({ end }) => end));
  assert.is(ends.filter((end) => end === 'b').length, 16); // a fifth of the calls, and the allowance
});

test('a call in the queue of a full instance moves with its session', async () => {
  const session = await openOnA('auto');
  const { length: capacity } = harness.fill('a');
  const call = ask(session, 'read');
  await settled();
  assert.is(harness.fleet.templates.group('t').queue.length, 1);
  harness.ref('a').drain();
  assert.is(await resultOf(call), 'b');
  assert.is(asked('a'), capacity);
  harness.backend('a').disconnect();
});

test('a call in the queue of a full instance was not carried out when the gateway stops', async () => {
  const session = await openOnA('auto');
  harness.fill('a');
  const call = ask(session, 'read');
  await settled();
  harness.isAccepting = false;
  const closed = harness.sessions.closeAll(1);
  await pass(1);
  const { code, delivered } = Object(await call.end);
  assert.equal([code, delivered], ['BACKEND_UNAVAILABLE', 'no']);
  await closed;
  harness.backend('a').disconnect();
});

test('a failed call waits for a new binding only for its remaining time', async () => {
  const { session } = await openBeforeFrozen();
  const call = ask(session, 'read');
  mock.timers.tick(3_000);
  harness.backend('a').disconnect();
  await pass(5);
  mock.timers.tick(994);
  assert.is(call.subscription.closed, false);
  mock.timers.tick(1);
  assert.equal(errorView(await call.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
});

test('calls under way, and reservations between two rounds, keep their session busy', async () => {
  const session = await openSilent();
  const reservation = reserve(session);
  const call = ask(session, 'read');
  assert.equal([session.callCount, session.isCalling, session.setIdle()], [2, true, false]);
  harness.backend('a').last.result('done');
  await call.end;
  assert.equal([session.callCount, session.isCalling], [1, true]);
  reservation.leave();
  reservation.leave();
  assert.equal([session.callCount, session.isCalling, session.setIdle()], [0, false, true]);
});

test('the end of a session ends its calls and reservations', async () => {
  const session = await openSilent();
  const ends: unknown[] = [];
  reserve(session, (error) => ends.push(errorView(error)));
  const call = ask(session, 'write');
  await session.close();
  ends.push(errorView(await call.end), errorView(await ask(session, 'read').end));
  const [code, sent] = ['SESSION_NOT_FOUND', 'unknown'];
  assert.equal(ends, [
    { code, delivered: sent },
    { code, delivered: sent },
    { code, delivered: 'no' },
  ]);
  const found = [session.callCount, harness.ref('a').calls.underWay, harness.ref('a').snapshot(1).inFlight];
  assert.equal(found, [0, 0, 0]);
  reserve(await harness.openSession(), (error) => ends.push(error.code));
  await harness.sessions.closeAll(60_000);
  assert.is(ends.at(-1), 'SHUTTING_DOWN');
});

test('the end of a session during a repeat does not say that the call never arrived', async () => {
  const session = await openSilent();
  harness.rewrite('a', (exchange) => {
    harness.rewrite('a', silent);
    fails('no')(exchange);
  });
  const call = ask(session, 'write');
  await judged();
  assert.equal([asked('a'), call.subscription.closed], [2, false]);
  await session.close();
  assert.equal(errorView(await call.end), { code: 'SESSION_NOT_FOUND', delivered: 'unknown' });
});

test('a call between two rounds stays at its instance when a new one has the same id', async () => {
  harness.setPolicy({ sessionFailover: 'always' });
  const backend = { handshake: FULL_MODERN, fields: HTTP, script: byTool };
  await harness.add('a', backend);
  const session = await harness.openSession(ASKABLE);
  const first = await firstValueFrom(reservationAfter(session, session.exchange(toolCall('write'))));
  await harness.add('a', backend);
  const other = ask(session, 'slow');
  await settled();
  const [old, next] = harness.transports.get('a') ?? [];
  assert.equal([next?.last.request.params?.name, old?.isClosed], ['slow', false]);
  const second = await firstValueFrom(reservationAfter(session, first.exchange(toolCall('write'))));
  first.leave();
  await resultOf(listen(second.exchange(toolCall('write'))));
  const written = (transport = old) =>
    transport?.exchanges.filter(({ request }) => request.params?.name === 'write').length;
  assert.equal([written(old), written(next)], [3, 0]);
  second.leave();
  other.subscription.unsubscribe();
});

test('an owner holds no more reservations than its share, except for continued calls', async () => {
  const session = await openSilent();
  const lost: string[] = [];
  const tell = ({ code, delivered }: GatewayError): number => lost.push(`${code} ${delivered}`);
  const held = Array.from({ length: LIMITS.callsAwaitingClient * LIMITS.ownerShare }, () =>
    reserve(session, tell),
  );
  const [first] = held;
  assert.equal([session.callCount, lost], [250, []]);
  reserve(session, tell);
  assert.equal([session.callCount, lost.splice(0)], [250, ['QUEUE_FULL unknown']]);
  const next = first && reserve(session, tell, first);
  assert.equal([session.callCount, lost], [251, []], 'until the call leaves its previous reservation');
  for (const reservation of [...held, next]) reservation?.leave();
  assert.equal([session.callCount, harness.ref('a').snapshot(1).inFlight], [0, 0]);
});

for (const whose of ['a shared', 'a dedicated'] as const) {
  for (const sessionFailover of ['never', 'always'] as const) {
    const fate = sessionFailover === 'never' ? 'fails' : 'may move';
    test(`a call between two rounds ${fate} when ${whose} conversation ends, with failover ${sessionFailover}`, async () => {
      const profile = whose === 'a shared' ? PLAIN : ASKABLE;
      const session = await openSilent(profile, sessionFailover);
      const lost: string[] = [];
      const tell = ({ code, delivered }: GatewayError): number => lost.push(`${code} ${delivered}`);
      const reservation = reserve(session, tell);
      if (profile === ASKABLE) harness.conversations('a')[0]?.disconnect();
      else harness.backend('a').disconnect();
      await settled();
      const expected = sessionFailover === 'never' ? ['BACKEND_UNAVAILABLE unknown'] : [];
      assert.equal([harness.ref('a').snapshot(1).inFlight, lost], [0, expected]);
      reservation.leave();
      assert.is(session.setIdle(), true);
    });
  }
}

test.run();

/** A session on `a`, which answers only by the script, with an answering `b` beside it. */
async function openOnA(
  sessionFailover: TemplatePolicy['sessionFailover'],
  script: (exchange: ScriptedExchange) => void = silent,
  scriptOfB?: (exchange: ScriptedExchange) => void,
) {
  harness.setPolicy({ sessionFailover });
  return harness.openOnA({ script }, scriptOfB === undefined ? {} : { script: scriptOfB });
}

/** A session on `a`, beside which `b` opens no conversation before `thaw`; calls may take 4 s and get no answer. */
async function openBeforeFrozen() {
  harness.setPolicy({ callTimeoutMs: 4_000, sessionFailover: 'always' });
  const instance = { fields: HTTP, script: silent };
  const session = await harness.openOnA(instance, instance);
  return { session, ...harness.freeze('b') };
}

function asked(id: string): number {
  return harness.backend(id).asked.filter((method) => method === 'tools/call').length;
}

/** Long enough for the gateway to know whether the call or its instance broke. */
async function judged(): Promise<void> {
  for (const waitMs of [5, 25, 125]) {
    await settled();
    mock.timers.tick(waitMs);
  }
  await settled();
}

/** A session on `a`, which answers nothing. */
async function openSilent(
  profile: ClientProfile = PLAIN,
  sessionFailover: TemplatePolicy['sessionFailover'] = 'never',
) {
  harness.setPolicy({ sessionFailover });
  await harness.add('a', { script: silent });
  return harness.openSession(profile);
}

/** Reserves with the answer to a call, perhaps the next round of a call that has a reservation. */
function reserve(
  session: ClientSession,
  lost: (error: GatewayError) => void = () => undefined,
  before: Pick<Reservation, 'exchange'> = session,
): Reservation {
  const reservations: Reservation[] = [];
  before.exchange(toolCall('write')).subscribe((answer) => reservations.push(session.reserve(answer, lost)));
  (harness.conversations('a')[0] ?? harness.backend('a')).last.result();
  const [reservation] = reservations;
  if (reservation === undefined) throw new Error('there was no answer');
  return reservation;
}

/** Answers all calls but those of the tool `slow`. */
function byTool(exchange: ScriptedExchange): void {
  if (exchange.request.params?.name !== 'slow') queueMicrotask(() => exchange.result());
}

/** Makes a reservation with each answer. */
function reservationAfter(
  session: ClientSession,
  events$: Observable<SourcedEvent>,
): Observable<Reservation> {
  return events$.pipe(map((answer) => session.reserve(answer, () => undefined)));
}
