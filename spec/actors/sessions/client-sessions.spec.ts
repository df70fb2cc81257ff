// The sessions of a gateway: their limits by owner, and the ends of sessions, a few per turn of the event loop when many end
// at once. Sessions with all templates have separate limits.

import { mock } from 'node:test';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { InspectionEvent } from 'xstate';
import { SESSION_ACTOR_ID } from '../../../src/actors/fleet/root.machine.ts';
import type { ClientSession } from '../../../src/actors/sessions/client-session.ts';
import { UNUSED_MS } from '../../../src/actors/sessions/idle-sweep.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import type { EndReason } from '../../../src/domain/errors/session-ends.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { profileBytes } from '../../../src/domain/mcp/client.ts';
import { MIN_SHARE } from '../../../src/domain/memory/user-shares.ts';
import { REPLACEABLE_MS } from '../../../src/domain/sessions/mcp-session.ts';
import { type AnySessionValue, SESSION_VERSION } from '../../../src/domain/sessions/session-value.ts';
import { answers, ask, Harness, listenTo, resultOf } from '../../helpers/backends/harness.ts';
import { ASKABLE, FULL, HTTP, LARGE, PLAIN, STDIO } from '../../helpers/backends/profiles.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { TurnCounter } from '../../helpers/time/turns.ts';
import { HANDSHAKE, ScriptedSession } from '../../protocol/scripted-backends.ts';

const test = suite('client sessions');
const MAX = 40;
const MANY = 60;
const PER_TURN = 5;
let count = 0;
let harness = new Harness();

simulateTime(test, () => {
  harness = new Harness({ maxSessions: MAX });
});
test.after.each(() => harness.close());

test('a session that opens too slowly, or when the table is closed, fails and leaves nothing', async () => {
  await harness.add('a', { fields: HTTP });
  harness.backend('a').openConversation = () => new Promise(() => undefined);
  const opening = codeOf(harness.openSession());
  await settled();
  assert.is(harness.sessions.size, 1);
  await pass(DEFAULT_POLICY.callTimeoutMs - 1);
  assert.is(harness.sessions.size, 1);
  mock.timers.tick(1);
  assert.is(await opening, 'BACKEND_TIMEOUT');
  assert.is(harness.sessions.size, 0);
  const late = codeOf(harness.openSession());
  await settled();
  await harness.sessions.closeAll(0);
  assert.equal([await late, harness.sessions.size], ['SHUTTING_DOWN', 0]);
});

test('large profiles are counted in bytes until the sessions end; usual ones are not', async () => {
  harness = new Harness();
  await harness.add('a', { fields: HTTP });
  const large = { ...PLAIN, capabilities: LARGE };
  const opened: ClientSession[] = [];
  const { share } = harness.declarations;
  const one = profileBytes(large);
  for (let held = one; held <= share; held += one) opened.push(await harness.openSession(large));
  assert.is(harness.declarations.total, opened.length * one);
  assert.is(await codeOf(harness.openSession(large)), 'SESSION_LIMIT');
  const usual = await harness.openSession();
  await opened.pop()?.close();
  opened.push(await harness.openSession(large), usual);
  await Promise.all(opened.map((session) => session.close()));
  assert.equal([harness.declarations.total, harness.sessions.size], [0, 0]);
});

test('the owners are those of the sessions: clients of one user are revoked one by one', async () => {
  await harness.add('a', { fields: HTTP });
  const [first, second] = [grantPrincipalId('1', 'ann'), grantPrincipalId('2', 'ann')];
  const opened = await harness.openSession(PLAIN, first);
  harness.backend('a').openConversation = () => new Promise(() => undefined);
  const opening = codeOf(harness.openSession(ASKABLE, second));
  await settled();
  assert.equal(new Set(harness.sessions.owners), new Set([first, second]));
  await harness.sessions.endOf(second);
  await opening;
  assert.equal([...harness.sessions.owners], [first]);
  await opened.close();
  assert.equal([...harness.sessions.owners], []);
});

test('a thousand closed sessions leave no call, subscription or conversation at the instances', async () => {
  await harness.close();
  harness = new Harness();
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) {
    await harness.add(id, { handshake: FULL, script: answers({}), fields: id > 'b' ? HTTP : {} });
  }
  for (let n = 0; n < 1_000; n += 1) {
    const session = await harness.openSession(n % 5 === 0 ? ASKABLE : PLAIN, `owner ${n}`);
    listenTo(session);
    await resultOf(ask(session, { method: 'resources/subscribe', params: { uri: `x:${n % 7}` } }));
    await session.close();
  }
  await settled();
  assert.is(harness.sessions.size, 0);
  assert.is(harness.subscribed, 0);
  for (const id of ids) {
    assert.is(harness.ref(id).activeCalls, 0);
    // Only the instance's own session still listens to its conversation, directly and by its feed.
    assert.is(harness.backend(id).listeners, 2);
    for (const conversation of harness.conversations(id)) {
      assert.equal([conversation.isClosed, conversation.listeners], [true, 0]);
    }
  }
});

test('unused sessions are idle, and continue at the next message', async () => {
  await harness.add('a');
  const session = await harness.openSession();
  await rest();
  assert.is(session.activity.isIdle, true);
  assert.is(harness.sessions.find(session.id), session);
  assert.is(session.activity.isIdle, true);
  assert.is(await resultOf(ask(session, 'read')), 'a');
  assert.is(session.activity.isIdle, false);
  await rest();
  session.notify('notifications/custom', {});
  assert.is(session.activity.isIdle, false);
  await rest();
  listenTo(session).subscription.unsubscribe();
  assert.is(session.activity.isIdle, false);
  await rest();
  const release = session.hold();
  await rest();
  assert.is(session.activity.isIdle, false);
  release();
  await rest();
  assert.is(session.activity.isIdle, true);
});

test('a session has one actor while it is in use, none before its first request and none while it is idle', async () => {
  await harness.add('a');
  const actors = new Set<InspectionEvent['actorRef']>();
  harness.fleet.root.system.inspect(({ actorRef }) => {
    if ('id' in actorRef && actorRef.id === SESSION_ACTOR_ID) actors.add(actorRef);
  });
  const statuses = () => [...actors].map((actor) => actor.getSnapshot().status);
  const session = await harness.openSession();
  session.notify('notifications/initialized', {});
  assert.equal(statuses(), []);
  await resultOf(ask(session, 'read'));
  assert.equal(statuses(), ['active']);
  await rest();
  assert.equal(statuses(), ['done']);
  await resultOf(ask(session, 'read'));
  const { subscription } = listenTo(session);
  await rest();
  assert.equal([statuses(), session.activity.isIdle], [['done', 'active'], true]);
  subscription.unsubscribe();
  assert.equal(statuses(), ['done', 'done']);
  await session.close();
  assert.equal(statuses(), ['done', 'done']);
});

test('a session that is idle for too long ends, at its backend, too', async () => {
  await harness.add('a', { fields: HTTP });
  const [idle, busy] = [await harness.openSession(), await harness.openSession()];
  const release = busy.hold();
  const ends: string[] = [];
  idle.ended$.subscribe((reason) => ends.push(reason));
  for (const ms of [UNUSED_MS, LIMITS.sessionIdleMs - UNUSED_MS]) await pass(ms);
  assert.equal(ends, ['idle']);
  const found = harness.conversations('a').map(({ isClosed }) => isClosed);
  assert.equal(found, [true, false]);
  assert.is(harness.sessions.find(busy.id), busy);
  release();
  await pass(LIMITS.sessionIdleMs - 1_000);
  assert.is(harness.sessions.size, 1);
  await pass(UNUSED_MS + 2_000);
  assert.is(harness.sessions.size, 0);
  await harness.openSession();
  for (const ms of [UNUSED_MS, LIMITS.sessionIdleMs]) await pass(ms);
  assert.is(harness.sessions.size, 0, 'the next one, too');
});

test('a client that was away for minutes leaves its process to one that needs it', async () => {
  await harness.close();
  harness = new Harness({ own: { processes: 3, share: 1 } });
  await harness.add('a', { handshake: FULL, fields: STDIO });
  const open = (name: string) => harness.openSession(ASKABLE, name);
  const [present, longer, shorter] = [await open('present'), await open('longer'), await open('shorter')];
  const release = present.hold();
  const ends: string[] = [];
  longer.ended$.subscribe((reason) => ends.push(reason));
  await pass(UNUSED_MS - 1_000);
  shorter.hold()(); // used
  for (const ms of [UNUSED_MS, REPLACEABLE_MS - 2 * UNUSED_MS]) await pass(ms);
  assert.is(await codeOf(open('early')), 'QUEUE_FULL');
  await pass(2_000);
  const next = await open('next');
  assert.equal(ends, ['processNeeded']);
  const closed = harness.conversations('a').map(({ isClosed }) => isClosed);
  assert.equal(closed, [false, true, false, false]);
  assert.is(await codeOf(open('soon')), 'QUEUE_FULL');
  const found = [present, longer, shorter, next].map(({ id }) => harness.sessions.find(id) !== undefined);
  assert.equal(found, [true, false, true, true]);
  release();
});

test('an open stream gets messages, but does not keep an idle session from ending', async () => {
  await harness.add('a', { handshake: FULL });
  const session = await harness.openSession();
  await resultOf(ask(session, 'read'));
  const received = listenTo(session);
  await pass(LIMITS.sessionIdleMs - 1_000);
  harness.backend('a').sendNotification('notifications/tools/list_changed');
  const found = [harness.sessions.size, received.messages.length, received.subscription.closed];
  assert.equal(found, [1, 1, false]);
  await pass(2_000);
  assert.equal([harness.sessions.size, received.subscription.closed], [0, true]);
});

test('one timer serves all sessions', async () => {
  await harness.add('a');
  const sessions = [];
  for (let n = 0; n < 5; n += 1) sessions.push(...(await openAll(MAX / 5, `owner ${n}`)));
  await pass(UNUSED_MS + 5_000);
  assert.ok(sessions.every(({ activity }) => activity.isIdle));
  assert.ok(harness.sessionAlarms < 5, `${harness.sessionAlarms} timers were set`);
});

test('equal profiles are one object, whatever the order of their fields', async () => {
  await harness.add('a');
  const [one, other, third] = [
    await harness.openSession({ ...PLAIN, clientInfo: { name: 'x', version: '1' } }),
    await harness.openSession({ ...PLAIN, clientInfo: { version: '1', name: 'x' } }),
    await harness.openSession({ ...PLAIN, clientInfo: { name: 'y', version: '1' } }),
  ];
  assert.is(one.value.profile, other.value.profile);
  assert.equal(one.value.profile, { ...PLAIN, clientInfo: { name: 'x', version: '1' } });
  assert.equal(third.value.profile.clientInfo, { name: 'y', version: '1' });
});

test('anonymous callers may open all sessions, and one owner, too, when the maximum is small', async () => {
  for (const [maxSessions, owner] of [[MAX, 'anonymous'] as const, [6, 'ann'] as const]) {
    await harness.close();
    harness = new Harness({ maxSessions });
    await harness.add('a');
    for (let count = 0; count < maxSessions; count += 1) await harness.openSession(PLAIN, owner);
    assert.is(await codeOf(harness.openSession(PLAIN, owner)), 'SESSION_LIMIT');
  }
});

test('a session that could not be opened does not count', async () => {
  assert.is(await codeOf(harness.openSession(PLAIN, 'ann')), 'NO_HEALTHY_INSTANCE');
  await harness.add('a', { fields: HTTP });
  harness.backend('a').thrownByOpenConversation = new Error('no');
  for (let count = 0; count < 3; count += 1) await codeOf(harness.openSession(PLAIN, 'ann'));
  harness.backend('a').thrownByOpenConversation = undefined;
  await harness.openSession(PLAIN, 'ann');
  assert.is(harness.sessions.size, 1);
});

test('an opening whose client disconnects is aborted, and no longer counts', async () => {
  for (const id of ['a', 'b']) await harness.add(id, { fields: HTTP });
  const frozen = ['a', 'b'].map((id) => harness.freeze(id));
  const client = new AbortController();
  const opening = codeOf(harness.sessions.open('t', 'ann', PLAIN, { signal: client.signal }));
  await settled();
  assert.is(harness.sessions.size, 1);
  client.abort();
  assert.equal([await opening, harness.sessions.size], ['SESSION_NOT_FOUND', 0]);
  await settled();
  const signals = frozen.flatMap((each) => each.signals);
  const found = signals.map(({ aborted }) => aborted);
  assert.equal(found, [true]);
  assert.is(
    await codeOf(harness.sessions.open('t', 'ann', PLAIN, { signal: client.signal })),
    'SESSION_NOT_FOUND',
  );
});

test('a client that disconnects right after its session was bound has none, later it keeps its session', async () => {
  await harness.add('a');
  const client = new AbortController();
  const open = () => harness.sessions.open('t', 'ann', PLAIN, { signal: client.signal });
  const session = await open();
  const opening = codeOf(open());
  client.abort();
  assert.equal([await opening, harness.sessions.list().length], ['SESSION_NOT_FOUND', 1]);
  assert.is(harness.sessions.find(session.id), session);
});

test('sessions with all templates have a limit apart from sessions with one template', async () => {
  await harness.add('a');
  const [first] = Array.from({ length: MAX }, (_, owner) => add(`${owner}`));
  assert.throws(() => add('more'), /40/);
  await first?.close();
  add('more');
  await harness.openSession(PLAIN, 'ann');
  assert.is(harness.sessions.size, MAX + 1);
});

test('in a full table a client that was away for five minutes makes room, not one with a stream', async () => {
  await harness.close();
  harness = new Harness({ maxSessions: 2 });
  await harness.add('a');
  const [streaming, away] = [await harness.openSession(), await harness.openSession()];
  streaming.hold();
  for (const ms of [UNUSED_MS, REPLACEABLE_MS - UNUSED_MS - 1_000]) await pass(ms);
  assert.is(await codeOf(harness.openSession()), 'SESSION_LIMIT');
  await pass(2_000);
  const ended = firstValueFrom(away.ended$);
  await harness.openSession();
  assert.is(await ended, 'placeNeeded');
  assert.is(await codeOf(harness.openSession()), 'SESSION_LIMIT', 'one at a time');
  assert.is(harness.sessions.find(streaming.id), streaming);
});

test('of many sessions that continue at once, none ends another one that was away', async () => {
  await harness.close();
  harness = new Harness({ maxSessions: 2 });
  await harness.add('a');
  const away = await harness.openSession();
  for (const ms of [UNUSED_MS, REPLACEABLE_MS]) await pass(ms);
  const { value } = away;
  const recover = (id: string) => harness.sessions.recoverFrom(id, value, 2);
  await Promise.all(Array.from({ length: 2 }, () => harness.sessions.checkRecoverable(value)));
  recover('one');
  assert.throws(() => recover('two'), /oo many .*open/);
  assert.equal([harness.sessions.find(away.id), harness.sessions.find('two')], [away, undefined]);
  await away.close();
  recover('two');
  assert.ok(harness.sessions.find('two'));
});

for (const [whose, first, second] of [
  ['a caller', 'ann', 'ann'],
  ['a user', grantPrincipalId('1', 'ann'), grantPrincipalId('2', 'ann')],
] as const)
  test(`where the share of ${whose} is full, only an absent client of that caller makes room`, async () => {
    await harness.close();
    const [share, most] = [MIN_SHARE, 2 * MIN_SHARE];
    harness = new Harness({ maxSessions: most, own: { processes: 1, share: 0.1 } });
    await harness.add('a');
    const other = await harness.openSession(PLAIN, 'bob');
    const own = await openAll(share, first);
    assert.is(await codeOf(harness.openSession(PLAIN, second)), 'SESSION_LIMIT');
    for (const ms of [UNUSED_MS, REPLACEABLE_MS]) await pass(ms);
    await harness.openSession(PLAIN, second);
    const kept = [other, ...own].filter(({ id }) => harness.sessions.find(id) !== undefined);
    assert.equal([kept.includes(other), kept.length], [true, share]);
  });

test('a place with one template is made by ending a whole session with all templates, not a part of it', async () => {
  await harness.close();
  harness = new Harness({ maxSessions: 2 });
  await harness.add('a');
  const [unused, whole] = [add('somebody'), add('somebody')];
  const part = await harness.openSession();
  await pass(1_000);
  const plain = await harness.openSession();
  whole.partIds.push(part.id);
  whole.onClose = () => void part.close();
  for (const ms of [UNUSED_MS, REPLACEABLE_MS]) await pass(ms);
  await harness.openSession();
  assert.equal([unused.endReason, harness.sessions.find(part.id)], [undefined, undefined]);
  assert.is(whole.endReason, 'placeNeeded');
  assert.is(harness.sessions.find(plain.id), plain);
  add();
  add();
  assert.throws(add, /has too many open sessions \(2;/);
  assert.is(unused.endReason, 'placeNeeded');
});

test('idle sessions end a few per turn, those that were used meanwhile later', async () => {
  await paced();
  const sessions = Array.from({ length: MANY }, (_, owner) => add(`${owner}`));
  const turns = new TurnCounter();
  for (const session of sessions) session.onClose = turns.note;
  await pass(UNUSED_MS);
  await turns.pass(MANY);
  if (sessions[0] !== undefined) harness.sessions.used(sessions[0]);
  await pass(LIMITS.sessionIdleMs - UNUSED_MS);
  await turns.pass(MANY);
  assert.equal([turns.all, turns.fullest, harness.sessions.size], [MANY - 1, PER_TURN, 1]);
});

test('closing refuses new sessions and ends all: busy ones after their calls, or after the grace time', async () => {
  await harness.add('a');
  const [idle, busy, stuck] = [add(), add(), add()];
  busy.callCount = stuck.callCount = 1;
  const closed = harness.sessions.closeAll(2 * LIMITS.sessionIdleMs);
  for (const ms of [UNUSED_MS, LIMITS.sessionIdleMs]) await pass(ms);
  const reasons = () => [idle, busy, stuck].map(({ endReason }) => endReason);
  const reason = 'shutDown';
  assert.equal(reasons(), [reason, undefined, undefined], 'none is ended for being idle');
  assert.throws(add, (error: { code: string }) => error.code === 'SHUTTING_DOWN');
  assert.is(await codeOf(harness.openSession()), 'SHUTTING_DOWN');
  busy.finish();
  await settled();
  assert.equal(reasons(), [reason, reason, undefined]);
  mock.timers.tick(LIMITS.sessionIdleMs);
  await closed;
  assert.equal(reasons(), [reason, reason, reason]);
});

test('closing also ends an idle session that is used before its turn', async () => {
  await paced();
  await harness.add('a');
  const sessions = await openAll(MANY, 'ann');
  await rest();
  const closed = harness.sessions.closeAll(1_000);
  sessions.at(-1)?.notify('notifications/custom', {});
  await closed;
  assert.is(harness.sessions.size, 0);
});

test('ends all sessions of an owner, and no others', async () => {
  await paced();
  await harness.add('a', { fields: HTTP });
  const turns = endsOf(await openAll(MANY, 'ann'));
  await harness.openSession(PLAIN, 'bob');
  await harness.sessions.endOf('ann');
  assert.equal([turns.all, turns.fullest, harness.sessions.size], [MANY, PER_TURN, 1]);
  assert.is(harness.conversations('a').filter(({ isClosed }) => isClosed).length, MANY);
});

test('moves no session whose client stopped listening before its turn', async () => {
  await paced();
  await harness.add('a', { handshake: FULL });
  const received = (await openAll(MANY, 'ann')).map(listenTo);
  await harness.add('b', { handshake: FULL });
  harness.ref('a').drain();
  for (const { subscription } of received) subscription.unsubscribe();
  await new TurnCounter().pass(MANY);
  const moved = harness.events.filter(({ type }) => type === 'session.moved').length;
  assert.ok(moved <= PER_TURN, `${moved}`);
});

test.run();

async function openAll(count: number, ownerId: string): Promise<ClientSession[]> {
  const sessions = [];
  for (let n = 0; n < count; n += 1) sessions.push(await harness.openSession(PLAIN, ownerId));
  return sessions;
}

/** Long enough for every unused session to be idle. */
async function rest(): Promise<void> {
  await pass(2 * UNUSED_MS + 2_000);
}

/** An aggregate session: one of the sessions until it is closed. */
class AggregateSession extends ScriptedSession {
  readonly partIds: string[] = [];
  endReason: EndReason | undefined;
  onClose = () => {};

  constructor(ownerId: string) {
    count += 1;
    super(`session-${count}`, ownerId, PLAIN, HANDSHAKE);
  }

  override get value(): AnySessionValue {
    const { ownerId, profile } = this;
    return { version: SESSION_VERSION, kind: 'all', ownerId, profile, uris: {} };
  }

  override async close(reason: EndReason = 'closed'): Promise<void> {
    this.endReason ??= reason;
    this.onClose();
    harness.sessions.remove(this, reason);
  }

  /** Its last call ends. */
  finish(): void {
    this.callCount = 0;
    harness.sessions.used(this);
  }
}

function add(ownerId = 'ann'): AggregateSession {
  const session = new AggregateSession(ownerId);
  harness.sessions.add(session, 'new');
  return session;
}

async function paced(): Promise<void> {
  await harness.close();
  harness = new Harness({ perTurn: PER_TURN, policy: { sessionFailover: 'always' } });
}

function endsOf(sessions: readonly ClientSession[]): TurnCounter {
  const turns = new TurnCounter();
  for (const { ended$ } of sessions) ended$.subscribe(turns.note);
  return turns;
}
