// A session is written in each of its states, and made again from that in another gateway: a new actor, and nothing live of the old one.

import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import { UNUSED_MS } from '../../../src/actors/sessions/idle-sweep.ts';
import { readSession, writeSession } from '../../../src/domain/sessions/session-value.ts';
import {
  ask,
  type BackendOptions,
  type Caller,
  codeOf,
  fails,
  Harness,
  listenTo,
  resultOf,
  silent,
} from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, FULL_MODERN, HTTP, PLAIN, STDIO } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('session value');
const URI = 'file:///notes';
const SUBSCRIBE = { method: 'resources/subscribe', params: { uri: URI } };
const SET_LEVEL = { method: 'logging/setLevel', params: { level: 'info' } };
const DEDICATED: BackendOptions = { handshake: FULL, fields: HTTP };
const SHARED: BackendOptions = { handshake: FULL, fields: STDIO };
let before = new Harness();
let after = new Harness();
simulateTime(test, () => {
  before = new Harness();
  after = new Harness();
});
/** Calls that are never answered. */
const calls: Caller[] = [];
test.after.each(async () => {
  for (const { subscription } of calls.splice(0)) subscription.unsubscribe();
  await Promise.all([before.close(), after.close()]);
});

/** The session as another gateway makes it again. */
function again(session: ClientSession): ClientSession {
  const text = writeSession(session.value);
  assert.is(text.includes(session.id), false, 'the id is a credential');
  const value = readSession(text);
  if (value.kind !== 'template') throw new Error('another kind was written');
  return after.sessions.recoverFrom(session.id, value, 2);
}

/** Brings a session at the dedicated conversation of `a` into a state. */
const STATES: Readonly<Record<string, (session: ClientSession) => Promise<unknown> | unknown>> = {
  serving: () => undefined,
  'serving, with a call under way': (session) => {
    before.rewrite('a', silent);
    calls.push(ask(session, 'read'));
  },
  idle: () => pass(UNUSED_MS),
  binding: async (session) => {
    await before.add('b', DEDICATED);
    before.freeze('b');
    before.ref('a').drain();
    calls.push(ask(session, 'read'));
    await settled();
  },
  unbound: async (session) => {
    before.ref('a').drain();
    assert.is(codeOf(await ask(session, 'read').end), 'NO_HEALTHY_INSTANCE');
  },
};

for (const [state, enter] of Object.entries(STATES)) {
  test(`goes on elsewhere when it was written in the state "${state}"`, async () => {
    await before.add('a', DEDICATED);
    const session = await before.openSession(ASKABLE, 'ann');
    await resultOf(ask(session, SET_LEVEL));
    await resultOf(ask(session, SUBSCRIBE));
    await enter(session);
    await after.add('a', DEDICATED);
    const recovered = again(session);
    assert.equal(after.conversations('a'), [], 'nothing is opened before its first use');
    assert.equal(
      [
        recovered.id,
        recovered.value.ownerId,
        recovered.value.template,
        recovered.value.profile,
        recovered.instance.id,
      ],
      [session.id, 'ann', 't', ASKABLE, 'a'],
    );
    assert.equal([recovered.handshake.era, recovered.handshake.capabilities], ['legacy', FULL.capabilities]);
    assert.is(await resultOf(ask(recovered, 'read')), 'a');
    const [conversation] = after.conversations('a');
    assert.equal(conversation?.asked, ['logging/setLevel', 'resources/subscribe', 'tools/call']);
    assert.equal(after.backend('a').profiles, [ASKABLE]);
    const { messages } = listenTo(recovered);
    conversation?.sendNotification('notifications/resources/updated', { uri: URI });
    assert.equal(messages.length, 1);
    assert.equal(after.sessions.list().length, 1);
  });
}

test('a session that has ended is over elsewhere, too, for the same reason', async () => {
  await before.add('a', DEDICATED);
  const session = await before.openSession();
  await session.close('byClient');
  await after.add('a', DEDICATED);
  assert.throws(() => again(session), /its client ended it/);
  assert.is(after.sessions.size, 0);
});

test('a session that finishes, since it may not move, is over at its next request', async () => {
  await before.add('a', { ...DEDICATED, script: silent });
  const session = await before.openSession();
  await before.add('b', DEDICATED);
  calls.push(ask(session, 'write'));
  await settled();
  before.ref('a').drain();
  assert.is(codeOf(await ask(session, 'read').end), 'SESSION_NOT_FOUND');
  await after.add('b', DEDICATED);
  const recovered = again(session);
  assert.is(codeOf(await ask(recovered, 'read').end), 'SESSION_NOT_FOUND');
  assert.equal([after.sessions.size, after.conversations('b')], [0, []]);
});

test('a session that is open is not made again', async () => {
  await Promise.all([before.add('a', DEDICATED), after.add('a', DEDICATED)]);
  const session = await before.openSession();
  const recovered = again(session);
  assert.throws(
    () => again(session),
    (error: { readonly code: string }) => error.code === 'SESSION_NOT_FOUND',
  );
  assert.equal([after.sessions.size, await resultOf(ask(recovered, 'read'))], [1, 'a']);
});

for (const [name, how, goesOn] of [
  ['a conversation of its own', DEDICATED, false],
  ['a shared one', SHARED, true],
] as const) {
  test(`after a call that is not safe to repeat, in ${name}, it ${goesOn ? 'goes on' : 'is over'}`, async () => {
    await before.add('a', how);
    const session = await before.openSession();
    await resultOf(ask(session, 'write'));
    assert.is(session.value.unsafe, 'yes');
    await after.add('a', how);
    const end = await ask(again(session), 'read').end;
    assert.is(codeOf(end), goesOn ? 'a' : 'SESSION_NOT_FOUND');
  });
}

test('a call that is not safe to repeat and did not arrive does not count, but one under way does', async () => {
  await before.add('a', { ...DEDICATED, script: fails('no') });
  const session = await before.openSession();
  const refused = ask(session, 'write');
  for (const waitMs of [5, 25, 125]) await pass(waitMs);
  assert.is(codeOf(await refused.end), 'BACKEND_UNAVAILABLE');
  assert.is(session.value.unsafe, 'no');
  before.rewrite('a', silent);
  calls.push(ask(session, 'write'));
  await settled();
  assert.is(session.value.unsafe, 'unknown');
  await after.add('a', DEDICATED);
  assert.is(codeOf(await ask(again(session), 'read').end), 'SESSION_NOT_FOUND');
});

test('a shared session keeps level and subscriptions, which the gateway answers', async () => {
  const shared = { ...SHARED, handshake: FULL_MODERN };
  await before.add('a', shared);
  const session = await before.openSession(PLAIN);
  await resultOf(ask(session, SET_LEVEL));
  await resultOf(ask(session, SUBSCRIBE));
  await after.add('a', shared);
  const recovered = again(session);
  assert.equal(
    [recovered.value.logLevel, recovered.value.uris, recovered.handshake.era],
    ['info', [URI], 'modern'],
  );
  assert.is(await resultOf(ask(recovered, 'read')), 'a');
});

test('moves to another instance when its own is not there, and says so', async () => {
  await before.add('a', DEDICATED);
  const session = await before.openSession();
  await after.add('b', DEDICATED);
  const recovered = again(session);
  assert.is(await resultOf(ask(recovered, 'read')), 'b');
  const moves = after
    .eventsOf('session.moved')
    .map(({ fromInstanceId, instanceId }) => [fromInstanceId, instanceId]);
  assert.equal(moves, [['a', 'b']]);
});

test('a client that only listens opens nothing before its next request', async () => {
  await before.add('a', DEDICATED);
  const session = await before.openSession();
  await after.add('a', DEDICATED);
  const recovered = again(session);
  const { subscription, messages } = listenTo(recovered);
  await pass(10_000);
  assert.is(after.conversations('a').length, 0);
  assert.is(await resultOf(ask(recovered, 'read')), 'a');
  after.conversations('a')[0]?.sendNotification('notifications/message', { data: 'x' });
  assert.equal([after.conversations('a').length, messages.length], [1, 1]);
  subscription.unsubscribe();
});

test('a client that listens and has subscriptions is bound at once', async () => {
  await before.add('a', DEDICATED);
  const session = await before.openSession();
  await resultOf(ask(session, SUBSCRIBE));
  await after.add('a', DEDICATED);
  const { subscription } = listenTo(again(session));
  await settled();
  assert.is(after.conversations('a').length, 1);
  subscription.unsubscribe();
});

/** As many sessions of the former gateway, made again, and one of another owner. */
async function herd(count: number): Promise<ClientSession[]> {
  await before.add('a', DEDICATED);
  await after.add('a', DEDICATED);
  const sessions: ClientSession[] = [];
  for (let n = 0; n < count; n += 1) sessions.push(again(await before.openSession(PLAIN, 'ann')));
  return [...sessions, again(await before.openSession(ASKABLE, 'bob'))];
}

test('the conversations of many are opened 64 at a time, and those of new sessions at once', async () => {
  const sessions = await herd(199);
  const { signals, thaw } = after.freeze('a');
  const asked = sessions.map((session) => ask(session, 'read'));
  await settled();
  assert.is(signals.length, 64);
  const opening = after.openSession();
  await settled();
  assert.is(signals.length, 65);
  thaw();
  await opening;
  for (const caller of asked) assert.is(await resultOf(caller), 'a');
  assert.is(after.conversations('a').length, 201);
});

test('an opening that hangs delays the others by a second at most', async () => {
  const sessions = await herd(149);
  const { signals, thaw } = after.freeze('a');
  const asked = sessions.map((session) => ask(session, 'read'));
  await pass(999);
  assert.is(signals.length, 64);
  await pass(1);
  assert.is(signals.length, 128);
  await pass(1_000);
  assert.is(signals.length, 150);
  thaw();
  for (const caller of asked) assert.is(await resultOf(caller), 'a');
});

test('a session of another owner is opened before the rest of a herd', async () => {
  const sessions = await herd(199);
  const { thaw } = after.freeze('a');
  const asked = sessions.map((session) => ask(session, 'read'));
  await pass(1_000);
  thaw();
  for (const caller of asked) assert.is(await resultOf(caller), 'a');
  const { profiles } = after.backend('a');
  assert.is(
    profiles.findIndex(({ capabilities }) => Object.keys(capabilities).length > 0),
    64,
  );
});

test('a session that ends while it waits for its turn takes none', async () => {
  const sessions = await herd(64);
  const { signals, thaw } = after.freeze('a');
  const asked = sessions.map((session) => ask(session, 'read'));
  await settled();
  const [last] = sessions.slice(-1);
  await last?.close('byClient');
  await pass(2_000);
  assert.is(signals.length, 64);
  thaw();
  assert.is(codeOf(await asked.at(-1)?.end), 'SESSION_NOT_FOUND');
});

test.run();
