// How a session gets its binding, leaves it, and moves to another instance.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientProfile } from '../../../src/domain/client.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import type { SessionSharing } from '../../../src/domain/policy.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  ask,
  codeOf,
  FULL,
  HTTP,
  listenTo,
  MODERN,
  PLAIN,
  resultOf,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: rebinding');
let harness = new SessionHarness();
const PIPE = { transport: 'stdio', command: 'serve' } as const;
const SSE = { ...HTTP, transport: 'sse' } as const;
const BARE = { ...FULL, era: 'bare', protocolVersion: '' } as const;
/** What a backend of both eras says of itself to a legacy client. */
const DUAL = { ...MODERN, own: { ...FULL, era: 'legacy' } } as const;
type Row = readonly [
  SessionSharing,
  ClientProfile,
  Partial<Peer> & { readonly own?: Partial<Peer> },
  Partial<InstanceDefinition>,
  boolean,
];
const ROWS: readonly Row[] = [
  ['auto', PLAIN, FULL, PIPE, false],
  ['auto', ASKABLE, FULL, PIPE, true],
  ['shared', ASKABLE, FULL, PIPE, false],
  ['isolated', PLAIN, FULL, PIPE, true],
  ['auto', PLAIN, FULL, HTTP, true],
  ['shared', PLAIN, FULL, HTTP, true],
  ['auto', PLAIN, FULL, SSE, true],
  ['isolated', ASKABLE, MODERN, HTTP, false],
  ['shared', PLAIN, DUAL, HTTP, true],
  ['auto', ASKABLE, DUAL, HTTP, true],
  ['auto', ASKABLE, MODERN, PIPE, false],
  ['auto', ASKABLE, DUAL, PIPE, true],
  ['auto', PLAIN, DUAL, PIPE, false],
  ['shared', ASKABLE, DUAL, PIPE, false],
  ['shared', ASKABLE, MODERN, PIPE, false],
  ['isolated', PLAIN, MODERN, PIPE, true],
  ['isolated', PLAIN, DUAL, PIPE, true],
  ['isolated', ASKABLE, BARE, PIPE, false],
  ['isolated', ASKABLE, BARE, HTTP, false],
];

simulateTime(test, () => harness.close());

test('continues with the process that replaced its own', async () => {
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

test('waits, although it may not move, while its conversation is intact and there is no other instance', async () => {
  harness = new SessionHarness({ policy: { sessionFailover: 'never' } });
  await harness.add('a');
  const session = await harness.open();
  harness.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  assert.is(harness.sessions.find(session.id), session);
  harness.ref('a').resume();
  assert.is(await resultOf(ask(session, 'read')), 'a');
});

test('reports the shutdown of the gateway instead of the state of its instances', async () => {
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

test('tries the next instance when one refuses a conversation, and reports the last failure', async () => {
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

test('waits all of its time for a program, or without another instance', async () => {
  harness = new SessionHarness({ policy: { session: 'isolated', maxRetries: 1 } });
  for (const id of ['a', 'b']) await harness.add(id);
  const programs = ['a', 'b'].map((id) => freeze(id));
  const late = harness.open().catch(codeOf);
  await settled();
  mock.timers.tick(LIMITS.handshakeMs - 1);
  await settled();
  const found = programs.flat().map(({ aborted }) => aborted);
  assert.equal(found, [false]);
  mock.timers.tick(1);
  assert.is(await late, 'BACKEND_TIMEOUT');
});

test('retries to bind while its client listens', async () => {
  harness = new SessionHarness();
  await harness.add('a', { peer: FULL });
  const session = await harness.open();
  const heard = listenTo(session);
  harness.ref('a').drain();
  await settled();
  await harness.add('b', { peer: FULL });
  mock.timers.tick(5_000);
  await settled();
  harness.transport('b').tell('notifications/tools/list_changed');
  assert.is(heard.messages.length, 1);
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

for (const [session, client, { own, ...peer }, fields, isOwn] of ROWS) {
  const who = client === ASKABLE ? 'a client that can be asked' : 'a client that cannot be asked';
  const where = `${own === undefined ? (peer.era ?? 'legacy') : 'both eras'}, ${fields.transport}`;
  test(`${session}: ${who} has ${isOwn ? 'a conversation of its own' : 'a part'} (${where})`, async () => {
    harness = new SessionHarness({ policy: { session } });
    await harness.add('a', { peer, fields, ...(own === undefined ? {} : { own }) });
    const opened = await harness.open(client);
    assert.is(opened.isShared, !isOwn);
    assert.is(opened.peer.era, isOwn ? ((own ?? peer).era ?? 'legacy') : (peer.era ?? 'legacy'));
    assert.is(harness.upstreams('a').filter(({ isClosed }) => !isClosed).length, isOwn ? 1 : 0);
  });
}

test('one of many sessions finds out whether a program speaks the legacy era, too', async () => {
  const own = { processes: 4, share: 1 };
  for (const [peer, isOwn] of [
    [MODERN, false],
    [{ ...FULL, era: 'legacy' } as const, true],
  ] as const) {
    harness = new SessionHarness({ own });
    await harness.add('a', { peer: MODERN, fields: PIPE, own: peer });
    const first = await Promise.all(Array.from({ length: 4 }, (_, n) => harness.open(ASKABLE, `owner ${n}`)));
    assert.equal(
      first.map(({ isShared }) => isShared),
      Array.from({ length: 4 }, () => !isOwn),
    );
    assert.is(harness.upstreams('a').length, isOwn ? 4 : 1);
    if (isOwn) break;
    await Promise.all(Array.from({ length: 8 }, () => harness.open(ASKABLE)));
    assert.is(harness.upstreams('a').length, 1, 'it is known');
    await harness.close();
  }
});

test('closes a conversation that breaks while the state is repeated', async () => {
  harness = new SessionHarness();
  await harness.add('a', { peer: FULL, fields: HTTP });
  const { binder } = harness.sessions;
  const { signal } = new AbortController();
  const needs = {
    template: 't',
    ownerId: 'ann',
    profile: PLAIN,
    asksForLog: false,
    restoreState: () => Promise.reject(backendUnavailable('it broke', { delivered: 'unknown' })),
  };
  const failure: unknown = await binder.findBinding(needs, { signal }).catch((thrown: unknown) => thrown);
  assert.match(failure instanceof Error ? failure.message : '', 'it broke');
  assert.is(harness.upstreams('a')[0]?.isClosed, true);
});

test('returns to the same instance only without another one', async () => {
  harness = new SessionHarness();
  for (const id of ['a', 'b']) await harness.add(id);
  const { binder } = harness.sessions;
  const needs = { template: 't', ownerId: 'ann', profile: PLAIN, asksForLog: false };
  const { signal } = new AbortController();
  for (let n = 0; n < 4; n += 1) {
    const binding = await binder.findBinding(needs, { last: harness.ref('a'), signal });
    assert.is(binding.ref.id, 'b');
    binding.retire();
  }
  harness.ref('b').drain();
  await settled();
  const binding = await binder.findBinding(needs, { last: harness.ref('a'), signal });
  assert.is(binding.ref.id, 'a');
  binding.retire();
});

test.run();

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
