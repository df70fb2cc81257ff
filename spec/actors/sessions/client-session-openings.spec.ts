// How a session opens its conversation: at which instance, how often it tries, and whether it is dedicated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { Tries } from '../../../src/actors/calls/tries.ts';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { ClientProfile } from '../../../src/domain/mcp/client.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { ask, codeOf, Harness, listenTo, resultOf } from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('client session: openings');
let harness = new Harness();
const SSE = { ...HTTP, transport: 'sse' } as const;
const BARE = { ...FULL, era: 'bare', protocolVersion: '' } as const;
/** A backend of both eras, with its answer to a legacy client. */
const DUAL = { ...FULL_MODERN, own: { ...FULL, era: 'legacy' } } as const;

type Row = readonly [
  TemplatePolicy['processSharing'],
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

for (const [when, ids, fields, waitMs] of [
  ['at a program', ['a', 'b'], STDIO, DEFAULT_POLICY.startTimeoutMs],
  ['when there is no other instance', ['a'], HTTP, DEFAULT_POLICY.callTimeoutMs],
] as const) {
  test(`waits its whole time for a conversation ${when}`, async () => {
    harness.setPolicy({ processSharing: 'isolated', maxRetries: 1 });
    for (const id of ids) await harness.add(id, { fields });
    const signals = ids.map((id) => harness.freeze(id).signals);
    const late = harness.openSession().catch(codeOf);
    await pass(waitMs - 1);
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

for (const leave of ['removed', 'replaced'] as const) {
  test(`does not move, if it may not, when its instance is ${leave} while a dedicated process opens there`, async () => {
    harness.setPolicy({ sessionFailover: 'never' });
    const session = await harness.openOnA({ handshake: FULL }, { handshake: FULL });
    listenTo(session);
    harness.backend('a').openConversation = async () => {
      if (leave === 'replaced') void harness.add('a', { handshake: FULL });
      else void harness.fleet.remove('t', 'a', 0);
      throw backendUnavailable('it leaves', { delivered: 'no' });
    };
    const call = ask(session, { method: 'logging/setLevel', params: { level: 'debug' } });
    assert.is(codeOf(await call.end), 'BACKEND_UNAVAILABLE');
    assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  });
}

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
    harness.fleet.templates.setPolicy('t', { ...DEFAULT_POLICY, processSharing: 'isolated' });
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
  mock.timers.tick(DEFAULT_POLICY.startTimeoutMs);
  await Promise.all(codes);
});

test('a session that may wait long waits for the probe of another one, however long that takes', async () => {
  await harness.add('a', { handshake: FULL_MODERN, fields: STDIO });
  const { signals } = harness.freeze('a');
  const { binder } = harness.sessions;
  const ends = ['first', 'second'].map((ownerId) => {
    const end = new AbortController();
    const needs = { group: harness.fleet.templates.group('t'), ownerId, profile: ASKABLE, asksForLog: false };
    const options = { tries: new Tries(3), withinMs: LIMITS.callHardBoundMs, signal: end.signal };
    void binder.findBinding({ ...needs, ...options }).catch(codeOf);
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
    group: harness.fleet.templates.group('t'),
    ownerId: 'ann',
    profile: PLAIN,
    asksForLog: false,
    restoreBackendState: () => Promise.reject(backendUnavailable('it broke', { delivered: 'unknown' })),
  };
  const failure: unknown = await binder
    .findBinding({ ...needs, tries: new Tries(3), withinMs: 1_000, signal })
    .catch((thrown: unknown) => thrown);
  assert.match(failure instanceof Error ? failure.message : '', 'it broke');
  assert.is(harness.conversations('a')[0]?.isClosed, true);
});

test.run();

function isClosed(id: string): boolean[] {
  return harness.conversations(id).map((conversation) => conversation.isClosed);
}
