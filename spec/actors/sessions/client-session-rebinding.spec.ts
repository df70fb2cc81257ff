// How a session gets its binding, leaves it, and moves to another instance. Whether it may move when its instance is lost or leaves:
// by policy, by the state of its conversation, and by its calls in flight.

import { mock } from 'node:test';
import { firstValueFrom, map } from 'rxjs';
import * as assert from 'uvu/assert';
import { QUEUED_PER_INSTANCE } from '../../../src/actors/calls/wait-queue.ts';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import { DEFAULT_POLICY, type ProcessSharing, type SessionFailover } from '../../../src/balancing/policy.ts';
import { isRepeatable } from '../../../src/domain/calls/retry-rules.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { ClientProfile } from '../../../src/domain/mcp/client.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
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
} from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO, toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

type Reservation = ReturnType<ClientSession['reserve']>;
const test = suite('client session: rebinding');
let harness = new Harness();
const SILENT = { handshake: FULL, script: silent };
const SSE = { ...HTTP, transport: 'sse' } as const;
const BARE = { ...FULL, era: 'bare', protocolVersion: '' } as const;
/** A backend of both eras, with its answer to a legacy client. */
const DUAL = { ...FULL_MODERN, own: { ...FULL, era: 'legacy' } } as const;
/** The link to instance `a`, of another node, is lost, until the returned function is called; `again`: what differs then. */
async function loseWay(again: { readonly handshake?: Handshake } = {}): Promise<() => void> {
  const { promise: isBack, resolve } = Promise.withResolvers<void>();
  const { open } = harness;
  harness.open = async (...opening) => {
    await isBack;
    return Object.assign(await open(...opening), again);
  };
  harness.backend('a').disconnect();
  await settled();
  return resolve;
}

type Row = readonly [
  ProcessSharing,
  ClientProfile,
  Partial<Handshake> & { readonly own?: Partial<Handshake> | null },
  Partial<InstanceDefinition>,
  boolean,
];
const ROWS: readonly Row[] = [
  ['auto', PLAIN, FULL, STDIO, false],
  ['auto', ASKABLE, FULL, STDIO, true],
  ['shared', ASKABLE, FULL, STDIO, false],
  ['isolated', PLAIN, FULL, STDIO, true],
  ['auto', PLAIN, FULL, HTTP, true],
  ['shared', PLAIN, FULL, HTTP, true],
  ['auto', PLAIN, FULL, SSE, true],
  ['isolated', ASKABLE, FULL_MODERN, HTTP, false],
  ['shared', PLAIN, DUAL, HTTP, true],
  ['auto', ASKABLE, DUAL, HTTP, true],
  ['auto', ASKABLE, FULL_MODERN, STDIO, false],
  ['auto', ASKABLE, DUAL, STDIO, true],
  ['auto', PLAIN, DUAL, STDIO, false],
  ['shared', ASKABLE, DUAL, STDIO, false],
  ['shared', ASKABLE, FULL_MODERN, STDIO, false],
  ['isolated', PLAIN, FULL_MODERN, STDIO, true],
  ['isolated', PLAIN, DUAL, STDIO, true],
  ['isolated', ASKABLE, BARE, STDIO, false],
  ['isolated', ASKABLE, BARE, HTTP, false],
  ['isolated', ASKABLE, { ...FULL, own: null }, { transport: 'in-process' }, false],
];

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

for (const isSame of [true, false])
  test(`bound to ${isSame ? 'an instance' : 'a former backend'} of another node after a call that must not be repeated, it ${isSame ? 'waits for the link there' : 'ends'}`, async () => {
    const ref = await harness.add('a', { isElsewhere: true });
    const session = await harness.openSession();
    assert.is(await resultOf(ask(session, 'write')), 'a');
    const before = harness.backend('a');
    const open = harness.open;
    harness.open = async (...opening) => {
      if (isAway) throw backendUnavailable('its node does not answer', { delivered: 'no' });
      return Object.assign(await open(...opening), isSame ? { handshake: before.handshake } : {});
    };
    let isAway = true;
    before.disconnect();
    await settled();
    for (const seconds of [0, 5, 15]) {
      await pass(seconds * 1_000);
      assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
    }
    isAway = false;
    await pass(2_000);
    assert.is(ref.state, 'healthy');
    if (isSame) assert.is(await resultOf(ask(session, 'read')), 'a');
    else assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  });

for (const isSame of [true, false])
  test(`bound to ${isSame ? 'a program' : 'a former process'} of another node, its calls wait for the link there${isSame ? '' : ', and it ends'}`, async () => {
    await harness.add('a', { fields: STDIO, isElsewhere: true });
    const session = await harness.openSession();
    assert.is(await resultOf(ask(session, 'write')), 'a');
    const before = harness.backend('a');
    const wayBack = await loseWay(isSame ? { handshake: before.handshake } : {});
    const call = ask(session, 'read');
    await pass(8_000);
    wayBack();
    await pass(2_000);
    if (isSame) assert.is(await resultOf(call), 'a');
    else assert.is(codeOf(await call.end), 'SESSION_NOT_FOUND');
  });

test('that may move by the time the link to another node is there again, to a new process, goes on', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: STDIO, isElsewhere: true });
  const session = await harness.openSession();
  const wayBack = await loseWay();
  const call = ask(session, 'read');
  await pass(1_000);
  harness.setPolicy({ sessionFailover: 'auto' });
  wayBack();
  await pass(2_000);
  assert.is(await resultOf(call), 'a');
});

test('that only listen take no place among the calls that wait for the link to another node', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: STDIO, isElsewhere: true });
  for (let count = 0; count < QUEUED_PER_INSTANCE; count += 1) {
    const session = await harness.openSession(PLAIN, 'ann');
    await resultOf(ask(session, 'read'));
    listenTo(session);
  }
  const wayBack = await loseWay();
  const call = harness.call({ ...toolCall('read'), callerId: 'ann' });
  await pass(8_000);
  wayBack();
  await pass(2_000);
  assert.is(await call.end, 'a');
});

test('that find the queue of those that wait for the link to another node full are refused for that, and go on', async () => {
  harness.setPolicy({ sessionFailover: 'never' });
  await harness.add('a', { fields: STDIO, isElsewhere: true });
  const session = await harness.openSession(PLAIN, 'ann');
  await resultOf(ask(session, 'read'));
  const wayBack = await loseWay({ handshake: harness.backend('a').handshake });
  const waiting = Array.from({ length: QUEUED_PER_INSTANCE }, () =>
    harness.call({ ...toolCall('read'), callerId: 'ann' }),
  );
  assert.is(codeOf(await ask(session, 'read').end), 'QUEUE_FULL');
  wayBack();
  await pass(2_000);
  assert.is(await waiting[0]?.end, 'a');
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

test('tries the next instance when one refuses a conversation, and reports the last failure', async () => {
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) await harness.add(id, { fields: HTTP });
  const session = await harness.openSession();
  for (const id of ['b', 'c']) {
    harness.backend(id).thrownByOpenConversation = backendUnavailable('full', { delivered: 'no' });
  }
  harness.ref('a').drain();
  assert.is(await resultOf(ask(session, 'read')), 'd');
  harness.backend('d').disconnect();
  await settled();
  const end = await ask(session, 'read').end;
  assert.is(codeOf(end), 'BACKEND_UNAVAILABLE');
  harness.backend('c').thrownByOpenConversation = undefined;
  assert.is(await resultOf(ask(session, 'read')), 'c');
});

test('opens a conversation with a second HTTP instance when one opens nothing for a second, and closes the late one', async () => {
  for (const id of ['a', 'b']) await harness.add(id, { fields: HTTP });
  const { signals, thaw } = harness.freeze('a');
  const opening = harness.openSession();
  await pass(999);
  assert.is(harness.conversations('b').length, 0);
  await pass(1);
  const session = await opening;
  assert.is(await resultOf(ask(session, 'read')), 'b');
  assert.equal([signals[0]?.aborted, harness.conversations('a').length], [false, 0]);
  thaw();
  await settled();
  assert.equal(isClosed('a'), [true]);
  assert.equal([isClosed('b'), await resultOf(ask(session, 'read'))], [[false], 'b']);
});

test('the first of two instances may open its conversation after all, and the program of the other ends at once', async () => {
  harness.setPolicy({ processSharing: 'isolated' });
  await harness.add('a', { fields: HTTP });
  await harness.add('b', { fields: STDIO });
  const [one, other] = [harness.freeze('a'), harness.freeze('b')];
  const opening = harness.openSession();
  await pass(1_000);
  assert.is(other.signals.length, 1);
  one.thaw();
  const session = await opening;
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.equal([other.signals[0]?.aborted, isClosed('a')], [true, [false]]);
});

test('second openings use the retry budget; others wait for half of their time', async () => {
  for (const id of ['a', 'b']) await harness.add(id, { fields: HTTP });
  harness.freeze('a');
  const openings = Array.from({ length: 60 }, () => harness.openSession());
  await pass(0);
  assert.is(harness.conversations('b').length, 30);
  await pass(1_000);
  assert.is(harness.conversations('b').length, 30 + 12 + 10, 'a fifth of the openings, and the allowance');
  await pass(DEFAULT_POLICY.callTimeoutMs / 2 - 1_000);
  assert.is((await Promise.all(openings)).length, 60);
});

for (const [when, ids, fields] of [
  ['at a program', ['a', 'b'], STDIO],
  ['when there is no other instance', ['a'], HTTP],
] as const) {
  test(`waits its whole time for a conversation ${when}`, async () => {
    harness.setPolicy({ processSharing: 'isolated', maxRetries: 1 });
    for (const id of ids) await harness.add(id, { fields });
    const signals = ids.map((id) => harness.freeze(id).signals);
    const late = harness.openSession().catch(codeOf);
    await pass(DEFAULT_POLICY.callTimeoutMs - 1);
    const found = signals.flat().map(({ aborted }) => aborted);
    assert.equal(found, [false]);
    mock.timers.tick(1);
    assert.is(await late, 'BACKEND_TIMEOUT');
  });
}

for (const since of ['before', 'after'] as const) {
  test(`binds again by itself while its client listens, from ${since} the loss on`, async () => {
    await harness.add('a', { handshake: FULL });
    const session = await harness.openSession();
    const early = since === 'before' ? listenTo(session) : undefined;
    harness.ref('a').drain();
    assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
    mock.timers.tick(5_000);
    const received = early ?? listenTo(session);
    await settled();
    await harness.add('b', { handshake: FULL });
    await pass(5_000);
    harness.backend('b').sendNotification('notifications/tools/list_changed');
    assert.is(received.messages.length, 1);
  });
}

test('keeps its usable binding when no dedicated process opens in time, and does not move if it may not', async () => {
  harness.setPolicy({ sessionFailover: 'never', callTimeoutMs: 4_000 });
  const session = await harness.openOnA({ handshake: FULL }, { handshake: FULL });
  listenTo(session);
  harness.freeze('a');
  const late = ask(session, { method: 'logging/setLevel', params: { level: 'debug' } });
  await pass(3_000);
  const waiting = ask(session, 'read');
  await pass(1_000);
  assert.equal([codeOf(await late.end), await waiting.end], ['BACKEND_TIMEOUT', 'a']);
  await pass(5_000);
  assert.is(session.instance.id, 'a');
});

test('counts a conversation that is over before its use as a failed opening', async () => {
  await harness.add('a', { fields: HTTP });
  const session = await harness.openSession();
  await harness.add('b', { fields: HTTP });
  const backend = harness.backend('b');
  const open = backend.openConversation.bind(backend);
  backend.openConversation = async (...args) => {
    const conversation = await open(...args);
    // At the tenth one it gives up: otherwise this spec would never end.
    if (backend.conversations.length < 10) conversation?.disconnect();
    return conversation;
  };
  harness.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'BACKEND_UNAVAILABLE');
  assert.is(backend.conversations.length, 1);
});

test('starts no process after the other for a client that only listens', async () => {
  harness.setPolicy({ processSharing: 'isolated' });
  await harness.add('a', { handshake: FULL, fields: STDIO });
  const session = await harness.openSession();
  listenTo(session);
  const crash = async () => {
    harness.conversations('a').at(-1)?.disconnect();
    await pass(100);
  };
  for (let crashes = 0; crashes < 40; crashes += 1) await crash();
  assert.is(harness.conversations('a').length, 2);
  await pass(5_000);
  assert.is(harness.conversations('a').length, 3);
  await crash();
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

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

for (const [session, client, { own, ...handshake }, fields, isOwn] of ROWS) {
  const who = client === ASKABLE ? 'a client that can be asked' : 'a client that cannot be asked';
  const where = `${own ? 'both eras' : (handshake.era ?? 'legacy')}, ${fields.transport}`;
  test(`sharing ${session}: ${who} has ${isOwn ? 'a dedicated' : 'a shared'} conversation (${where})`, async () => {
    harness.setPolicy({ processSharing: session });
    await harness.add('a', { handshake, fields, ...(own === undefined ? {} : { own }) });
    const opened = await harness.openSession(client);
    assert.is(opened.isShared, !isOwn);
    assert.is(
      opened.handshake.era,
      isOwn ? ((own ?? handshake).era ?? 'legacy') : (handshake.era ?? 'legacy'),
    );
    assert.is(harness.conversations('a').filter(({ isClosed }) => !isClosed).length, isOwn ? 1 : 0);
  });
}

test('one of several sessions finds out for all whether a modern program speaks the legacy era, too', async () => {
  const own = { processes: 4, share: 1 };
  for (const [handshake, isOwn] of [
    [FULL_MODERN, false],
    [{ ...FULL, era: 'legacy' } as const, true],
  ] as const) {
    harness = new Harness({ own });
    await harness.add('a', { handshake: FULL_MODERN, fields: STDIO, own: handshake });
    const first = await Promise.all(
      Array.from({ length: 4 }, (_, n) => harness.openSession(ASKABLE, `owner ${n}`)),
    );
    assert.equal(
      first.map(({ isShared }) => isShared),
      Array.from({ length: 4 }, () => !isOwn),
    );
    assert.is(harness.conversations('a').length, isOwn ? 4 : 1);
    if (isOwn) break;
    await Promise.all(Array.from({ length: 8 }, () => harness.openSession(ASKABLE)));
    assert.is(harness.conversations('a').length, 1, 'it is known');
    harness.fleet.setPolicy('t', { ...DEFAULT_POLICY, processSharing: 'isolated' });
    assert.is((await harness.openSession(ASKABLE)).isShared, false);
    await harness.close();
  }
});

test('another session finds out the eras of a program when the first one is aborted', async () => {
  await harness.add('a', { handshake: FULL_MODERN, fields: STDIO });
  const { signals } = harness.freeze('a');
  const first = new AbortController();
  const opening = [harness.sessions.open('t', 'first', ASKABLE, { signal: first.signal })];
  for (let n = 0; n < 3; n += 1) opening.push(harness.openSession(ASKABLE, `owner ${n}`));
  const codes = opening.map((session) => session.catch(codeOf));
  await settled();
  assert.is(signals.length, 1);
  first.abort();
  assert.is(await codes[0], 'SESSION_NOT_FOUND');
  await settled();
  assert.is(signals.length, 2);
  mock.timers.tick(DEFAULT_POLICY.callTimeoutMs);
  await Promise.all(codes);
});

test('a session that may wait long waits for the probe of another one, however long that takes', async () => {
  await harness.add('a', { handshake: FULL_MODERN, fields: STDIO });
  const { signals } = harness.freeze('a');
  const { binder } = harness.sessions;
  const ends = ['first', 'second'].map((ownerId) => {
    const end = new AbortController();
    const needs = { group: harness.fleet.group('t'), ownerId, profile: ASKABLE, asksForLog: false };
    void binder.findBinding(needs, { withinMs: LIMITS.callHardBoundMs }, end.signal).catch(codeOf);
    return end;
  });
  await settled();
  mock.timers.tick(DEFAULT_POLICY.callTimeoutMs);
  for (const [n, end] of ends.entries()) {
    await settled();
    assert.is(signals.length, n + 1);
    end.abort();
  }
});

test('closes a new conversation in which what a backend remembers cannot be restored', async () => {
  await harness.add('a', { handshake: FULL, fields: HTTP });
  const { binder } = harness.sessions;
  const { signal } = new AbortController();
  const needs = {
    group: harness.fleet.group('t'),
    ownerId: 'ann',
    profile: PLAIN,
    asksForLog: false,
    restoreBackendState: () => Promise.reject(backendUnavailable('it broke', { delivered: 'unknown' })),
  };
  const failure: unknown = await binder
    .findBinding(needs, { withinMs: 1_000 }, signal)
    .catch((thrown: unknown) => thrown);
  assert.match(failure instanceof Error ? failure.message : '', 'it broke');
  assert.is(harness.conversations('a')[0]?.isClosed, true);
});

test('binds again to the instance that it left only if there is no other', async () => {
  for (const id of ['a', 'b']) await harness.add(id);
  const { binder } = harness.sessions;
  const needs = { group: harness.fleet.group('t'), ownerId: 'ann', profile: PLAIN, asksForLog: false };
  const { signal } = new AbortController();
  const order = { last: harness.ref('a'), withinMs: 1_000 };
  for (let n = 0; n < 4; n += 1) {
    const binding = await binder.findBinding(needs, order, signal);
    assert.is(binding.ref.id, 'b');
    binding.leave();
  }
  harness.ref('b').drain();
  await settled();
  const binding = await binder.findBinding(needs, order, signal);
  assert.is(binding.ref.id, 'a');
  binding.leave();
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
  sessionFailover: SessionFailover,
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

function isClosed(id: string): boolean[] {
  return harness.conversations(id).map((conversation) => conversation.isClosed);
}
