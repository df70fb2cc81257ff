// Bounds of the table of sessions by owner, sessions with all templates at once (which have bounds of their own), and the end of
// many sessions in one moment: a few per turn of the event loop, so that other work does not wait for all of them.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import type { SessionRecord } from '../../../src/domain/client.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { Turns } from '../../helpers/turns.ts';
import {
  FULL,
  HTTP,
  listenTo,
  PLAIN,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client sessions: bounds');
const MAX = 40;
const SHARE = MAX * LIMITS.ownerShare;
const MANY = 60;
const PER_TURN = 5;
let harness = new SessionHarness();
let count = 0;
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness({ maxSessions: MAX });
  },
);

test('gives anonymous callers all of them', async () => {
  await harness.add('a');
  for (let count = 0; count < MAX; count += 1) await harness.open(PLAIN, 'anonymous');
  assert.is(await codeOf(harness.open(PLAIN, 'anonymous')), 'SESSION_LIMIT');
});

test('gives one caller all of a few', async () => {
  await harness.close();
  harness = new SessionHarness({ maxSessions: 6 });
  await harness.add('a');
  for (let count = 0; count < 6; count += 1) await harness.open(PLAIN, 'ann');
  const refusal = await harness.open(PLAIN, 'ann').catch((thrown: unknown) => thrown);
  assert.match(
    String(refusal),
    'All 6 sessions are taken (setting sessions.max)',
    'a greater share would not help',
  );
});

test('counts no session that could not be opened', async () => {
  assert.is(await codeOf(harness.open(PLAIN, 'ann')), 'NO_HEALTHY_INSTANCE');
  await harness.add('a', { fields: HTTP });
  harness.transport('a').thrownByOpenUpstream = new Error('no');
  for (let count = 0; count < 3; count += 1) await codeOf(harness.open(PLAIN, 'ann'));
  harness.transport('a').thrownByOpenUpstream = undefined;
  await harness.open(PLAIN, 'ann');
  assert.is(harness.sessions.size, 1);
});

test('calls off the opening of a client that went away, and frees what it held', async () => {
  await harness.add('a', { fields: HTTP });
  const signals: AbortSignal[] = [];
  harness.transport('a').openUpstream = (_, signal) => {
    signals.push(signal);
    return new Promise(() => undefined);
  };
  const client = new AbortController();
  const opening = codeOf(harness.sessions.open('t', 'ann', PLAIN, client.signal));
  await settled();
  assert.is(harness.sessions.size, 1);
  client.abort();
  assert.equal([await opening, harness.sessions.size, signals[0]?.aborted], ['SESSION_NOT_FOUND', 0, true]);
  assert.is(await codeOf(harness.sessions.open('t', 'ann', PLAIN, client.signal)), 'SESSION_NOT_FOUND');
});

test('leaves room for sessions with all templates, beside those with one template', async () => {
  await harness.add('a');
  for (let owner = 0; owner < MAX; owner += 1) add(`${owner}`);
  assert.throws(() => add('more'), /40/);
  await harness.open(PLAIN, 'ann');
  assert.is(harness.sessions.size, MAX + 1);
});

test('makes room with sessions that expired: of the owner where the share is full, else of all', () => {
  const idle = Array.from({ length: SHARE }, () => add());
  const others = Array.from({ length: MAX - SHARE }, (_, owner) => add(`${owner}`));
  for (const session of others) session.isHeld = true;
  mock.timers.setTime(Date.now() + LIMITS.sessionParkMs - 1);
  mock.timers.setTime(Date.now() + LIMITS.sessionIdleMs);
  add();
  const found = [idle.some(({ endReason }) => endReason === undefined), others[0]?.endReason];
  assert.equal(found, [false, undefined]);
});

test('when it is closed refuses new ones, and ends all: one with a call under way after that', async () => {
  const [idle, busy] = [add(), add()];
  busy.calls = 1;
  const closed = harness.sessions.closeAll(1_000);
  await settled();
  assert.equal([idle.endReason, busy.endReason], ['the gateway shuts down', undefined]);
  assert.throws(add, (error: { code: string }) => error.code === 'SHUTTING_DOWN');
  busy.finish();
  await closed;
  assert.is(busy.endReason, 'the gateway shuts down');
});

test('shows neither as parked nor as calling what is no session with one template', () => {
  const session = add();
  session.calls = 1;
  mock.timers.tick(2 * LIMITS.sessionParkMs);
  assert.equal([harness.sessions.parked, harness.sessions.calling], [0, 0]);
  session.finish();
});

test('ends all sessions of an owner, and no others', async () => {
  await paced();
  await harness.add('a', { fields: HTTP });
  const turns = endsOf(await openAll('ann'));
  await harness.open(PLAIN, 'bob');
  await harness.sessions.endOf('ann');
  assert.equal([turns.all, turns.fullest, harness.sessions.size], [MANY, PER_TURN, 1]);
  assert.is(harness.upstreams('a').filter(({ isClosed }) => isClosed).length, MANY);
});

test('moves no session whose client stopped listening before its turn', async () => {
  await paced();
  await harness.add('a', { peer: FULL });
  const heard = (await openAll('ann')).map(listenTo);
  await harness.add('b', { peer: FULL });
  harness.ref('a').drain();
  for (const { subscription } of heard) subscription.unsubscribe();
  await new Turns().pass(MANY);
  const moved = harness.inner.events.filter(({ type }) => type === 'session.moved').length;
  assert.ok(moved <= PER_TURN, `${moved}`);
});

test.run();

/** A session with all templates: in the table until it is closed. */
class AggregateSession implements SessionRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly profile = PLAIN;
  readonly parts = [];
  readonly isListened = false;
  openedAtMs = 0;
  usedAtMs = 0;
  isParked = false;
  calls = 0;
  isHeld = false;
  endReason: string | undefined;

  constructor(ownerId: string) {
    count += 1;
    this.id = `session-${count}`;
    this.ownerId = ownerId;
  }

  park(): boolean {
    return !this.isHeld;
  }

  dismiss(): void {}

  async close(reason = 'closed'): Promise<void> {
    this.endReason ??= reason;
    harness.sessions.remove(this);
  }

  /** Its last call ends. */
  finish(): void {
    this.calls = 0;
    harness.sessions.used(this);
  }
}

function add(ownerId = 'ann'): AggregateSession {
  const session = new AggregateSession(ownerId);
  harness.sessions.add(session);
  return session;
}

async function paced(): Promise<void> {
  await harness.close();
  harness = new SessionHarness({ perTurn: PER_TURN, policy: { sessionFailover: 'always' } });
}

async function openAll(ownerId: string): Promise<ClientSession[]> {
  const sessions = [];
  for (let count = 0; count < MANY; count += 1) sessions.push(await harness.open(PLAIN, ownerId));
  return sessions;
}

function endsOf(sessions: readonly ClientSession[]): Turns {
  const turns = new Turns();
  for (const { ended$ } of sessions) ended$.subscribe(turns.note);
  return turns;
}
