// How a session leaves its binding and moves to another instance. Whether it may move when its instance is lost or leaves: by policy, by
// the state of its conversation, and by its calls in flight. client-session-openings.spec.ts has how it gets a binding.

import { firstValueFrom, map } from 'rxjs';
import * as assert from 'uvu/assert';
import { Tries } from '../../../src/actors/calls/tries.ts';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import { isRepeatable } from '../../../src/domain/calls/retry-rules.ts';
import {
  ask,
  type BackendOptions,
  codeOf,
  fails,
  Harness,
  listen,
  listenTo,
  resultOf,
  silent,
  startsForEver,
} from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO, toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

type Reservation = ReturnType<ClientSession['reserve']>;
const test = suite('client session: rebinding');
let harness = new Harness();
const SILENT = { handshake: FULL, script: silent };

simulateTime(test, () => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('continues with the new process after its instance was restarted', async () => {
  await harness.add('a');
  const session = await harness.openSession();
  harness.backend('a').disconnect();
  await settled();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  await pass(1_000);
  assert.is(harness.ref('a').state, 'healthy');
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test('with failover never, survives a drain of its only instance, and ends when that is removed', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a');
  const session = await harness.openSession();
  harness.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  assert.is(harness.sessions.find(session.id), session);
  harness.ref('a').resume();
  assert.is(await resultOf(ask(session, 'read')), 'a');
  await harness.fleet.remove('t', 'a', 0);
  assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  assert.is(harness.sessions.find(session.id), undefined);
});

test('with failover never, ends at once when its only instance is replaced, also while that still has calls', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { handshake: FULL, fields: HTTP, script: silent });
  const session = await harness.openSession();
  const other = harness.call('write');
  await settled();
  harness.open = startsForEver;
  void harness.add('a');
  assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  other.subscription.unsubscribe();
});

for (const sessionFailover of ['auto', 'never'] as const) {
  test(`with failover ${sessionFailover}, reports the shutdown of the gateway, not the state of its instances`, async () => {
    harness.setPolicy({ sessionFailover });
    await harness.add('a', { script: () => undefined });
    const session = await harness.openSession();
    const slow = ask(session, 'write');
    harness.isAccepting = false;
    harness.ref('a').leave(25_000);
    assert.is(codeOf(await ask(session, 'read').end), 'SHUTTING_DOWN');
    harness.backend('a').last.result('slow');
    assert.is(await resultOf(slow), 'slow');
  });
}

test('fails with QUEUE_FULL when 256 calls wait for a move already', async () => {
  await harness.add('a', { fields: HTTP });
  const session = await harness.openSession();
  await harness.add('b', { fields: HTTP });
  harness.ref('a').drain();
  const calls = Array.from({ length: 257 }, () => ask(session, 'read'));
  assert.is(codeOf(await calls[256]?.end), 'QUEUE_FULL');
  calls[0]?.subscription.unsubscribe();
  for (const call of [calls[255], ask(session, 'read')]) assert.is(await call?.end, 'b');
});

for (const [failover, where] of [
  ['never', 'a'],
  ['always', 'b'],
] as const) {
  test(`with failover ${failover}, a call between two rounds continues at ${where} when ${where} is unhealthy`, async () => {
    const instance = { handshake: FULL_MODERN, fields: HTTP, own: FULL_MODERN };
    const session = await openOnA(failover, instance, instance, ASKABLE);
    const place = await betweenRounds(session);
    harness.backend('a').onExchange = silent;
    while (harness.ref('a').state === 'healthy') await pass(10_000);
    assert.equal([harness.ref('a').state, harness.conversations('a')[0]?.isClosed], ['unhealthy', false]);
    assert.is(await resultOf(listen(place.exchange(toolCall('read')))), where);
    place.leave();
  });
}

test('binds again to the instance that it left only if there is no other', async () => {
  for (const id of ['a', 'b']) await harness.add(id);
  const { binder } = harness.sessions;
  const needs = {
    group: harness.fleet.templates.group('t'),
    ownerId: 'ann',
    profile: PLAIN,
    asksForLog: false,
  };
  const { signal } = new AbortController();
  const order = () => ({ ...needs, tries: new Tries(3), last: harness.ref('a'), withinMs: 1_000, signal });
  for (let n = 0; n < 4; n += 1) {
    const binding = await binder.findBinding(order());
    assert.is(binding.ref.id, 'b');
    binding.endAfterCalls();
  }
  harness.ref('b').drain();
  await settled();
  const binding = await binder.findBinding(order());
  assert.is(binding.ref.id, 'a');
  binding.endAfterCalls();
});

/** Ways to lose an instance; after each of them it may not be used. */
const LOSSES: Readonly<Record<string, (id: string) => unknown>> = {
  'its process exits': (id) => harness.backend(id).disconnect(),
  'it is drained': (id) => harness.ref(id).drain(),
  'it leaves': (id) => void harness.fleet.remove('t', id, 0),
};

for (const [loss, lose] of Object.entries(LOSSES)) {
  for (const [failover, tool, isKept] of [
    ['auto', 'read', true],
    ['auto', 'again', true],
    ['auto', 'write', false],
    ['always', 'read', true],
    ['always', 'write', true],
    ['never', 'read', false],
    ['never', 'write', false],
  ] as const) {
    const outcome = isKept ? 'continues elsewhere' : 'ends';
    test(`with failover ${failover}, after a call of "${tool}", ${outcome} when ${loss}`, async () => {
      const session = await openOnA(failover);
      await resultOf(ask(session, tool));
      lose('a');
      await settled();
      const call = ask(session, 'read');
      if (isKept) {
        assert.is(await resultOf(call), 'b');
        assert.is(harness.sessions.find(session.id), session);
      } else {
        assert.is(codeOf(await call.end), 'SESSION_NOT_FOUND');
        assert.is(harness.sessions.find(session.id), undefined);
      }
    });
  }
}

test('knows by the method whether a request is safe to repeat', async () => {
  const ref = await harness.add('a');
  const safe = ['tools/list', 'resources/read', 'ping', 'completion/complete', 'logging/setLevel'];
  const unsafe = ['tasks/cancel', 'tools/call', 'constructor'];
  const found = [...safe, ...unsafe].filter((method) => isRepeatable({ method }, ref));
  assert.equal(found, safe);
});

for (const failover of ['never', 'auto'] as const) {
  for (const profile of [PLAIN, ASKABLE]) {
    const whose = profile === PLAIN ? 'a shared' : 'a dedicated';
    test(`with failover ${failover}, a drain lets the calls in ${whose} conversation end, and new calls fail`, async () => {
      const session = await openOnA(failover, SILENT, undefined, profile);
      const received = listenTo(session);
      const [one, other] = [ask(session, 'write'), ask(session, 'write')];
      harness.ref('a').drain();
      assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
      assert.is(harness.sessions.find(session.id), session);
      const [own] = harness.conversations('a');
      const backend = own ?? harness.backend('a');
      session.notify('notifications/custom', {});
      const found = own?.notified.map(({ method }) => method);
      assert.equal(found, own && ['notifications/custom']);
      other.subscription.unsubscribe();
      assert.is(harness.sessions.find(session.id), session);
      backend.open.at(-1)?.result('done');
      assert.is(await resultOf(one), 'done');
      assert.is(received.subscription.closed, true);
      assert.is(harness.sessions.find(session.id), undefined);
      await settled();
      if (own !== undefined) assert.is(own.isClosed, true);
    });
  }
}

test('calls of a finishing session that are cut off in their own process get the error of the process', async () => {
  const session = await openOnA('never', { ...SILENT, fields: STDIO }, undefined, ASKABLE);
  listenTo(session);
  const callers = [ask(session, 'write'), ask(session, 'write')];
  harness.ref('a').drain();
  await settled();
  const removed = harness.fleet.remove('t', 'a', 0);
  await pass(1_000);
  await removed;
  for (const { end } of callers) assert.is(codeOf(await end), 'BACKEND_UNAVAILABLE');
});

for (const [era, own] of Object.entries({ shared: null, own: FULL_MODERN })) {
  for (const failover of ['never', 'always'] as const) {
    test(`with failover ${failover}, a call between two rounds continues after a drain in its ${era} conversation`, async () => {
      const instance = { handshake: FULL_MODERN, fields: HTTP, own };
      const session = await openOnA(failover, instance, instance, ASKABLE);
      const [place, other] = [await betweenRounds(session), await betweenRounds(session)];
      harness.ref('a').drain();
      const next = ask(session, 'read');
      if (failover === 'always') assert.is(await resultOf(next), 'b');
      else assert.is(codeOf(await next.end), 'SESSION_NOT_FOUND');
      assert.is(await resultOf(listen(place.exchange(toolCall('write')))), 'a');
      assert.is(harness.sessions.find(session.id), session);
      for (let times = 0; times < 2; times += 1) place.leave();
      await settled();
      assert.is(harness.conversations('a')[0]?.isClosed, own === null ? undefined : false);
      other.leave();
      await settled();
      assert.is(harness.sessions.find(session.id), failover === 'always' ? session : undefined);
      assert.is(harness.conversations('a')[0]?.isClosed, own === null ? undefined : true);
    });
  }
}

test('closes the conversation that it left after the last call there, and gets no more messages from it', async () => {
  const session = await openOnA('always', { ...SILENT, fields: HTTP }, { handshake: FULL, fields: HTTP });
  const { messages } = listenTo(session);
  harness.rewrite('a', fails('no'));
  const calls = [ask(session, 'write')];
  ask(session, 'write').subscription.unsubscribe();
  harness.rewrite('a', silent);
  await pass(5); // it is repeated
  calls.push(ask(session, 'write'));
  const [left] = harness.conversations('a');
  assert.ok(left);
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'b');
  left.sendNotification('notifications/tools/list_changed');
  assert.equal([left.isClosed, messages.length], [false, 0]);
  calls[0]?.subscription.unsubscribe();
  assert.is(left.isClosed, false);
  left.open[0]?.result('done');
  assert.equal([await calls[1]?.end, left.isClosed, left.listeners], ['a', true, 0]);
});

test.run();

/** A session on `a`, with `b` beside it. */
function openOnA(
  sessionFailover: TemplatePolicy['sessionFailover'],
  a: BackendOptions = { handshake: FULL },
  b: BackendOptions = { handshake: FULL },
  profile = PLAIN,
): Promise<ClientSession> {
  harness.setPolicy({ sessionFailover });
  return harness.openOnA(a, b, profile);
}

/** Makes a reservation with the answer, as a call does that is to continue. */
function betweenRounds(session: ClientSession): Promise<Reservation> {
  const place$ = session
    .exchange(toolCall('write'))
    .pipe(map((answer) => session.reserve(answer, () => undefined)));
  return firstValueFrom(place$);
}
