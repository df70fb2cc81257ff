// Sessions with all templates at once stand in the same table as the others: a bound of their own, one idle expiry, one end.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { SessionRecord } from '../../../src/actors/client-sessions/expiring-sessions.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';
import { PLAIN, SessionHarness, settled, simulateTime } from './client-session-harness.ts';

const test = suite('client sessions: aggregate');
const MAX = 40;
const SHARE = MAX * LIMITS.ownerShare;
const IDLE_MS = LIMITS.sessionIdleMs;
let harness = new SessionHarness();
let count = 0;
simulateTime(
  test,
  () => harness.close(),
  () => {
    harness = new SessionHarness({ maxSessions: MAX });
  },
);

/** In the table until it is closed. */
class Session implements SessionRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly profile = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} };
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

function add(ownerId = 'ann'): Session {
  const session = new Session(ownerId);
  harness.sessions.add(session);
  return session;
}

test('has room for so many, beside the sessions with one template', async () => {
  await harness.add('a');
  for (let owner = 0; owner < MAX; owner += 1) add(`${owner}`);
  assert.throws(() => add('more'), /40/);
  await harness.open(PLAIN, 'ann');
  assert.is(harness.sessions.size, MAX + 1);
});

test('gives one owner a share, which ends with the sessions', async () => {
  const [first] = Array.from({ length: SHARE }, () => add());
  assert.throws(() => add(), /You have 10 sessions already/);
  assert.equal(harness.sessions.owners, ['ann']);
  add('bob');
  await first?.close();
  add();
});

test('makes room with sessions that expired: of the owner where the share is full, else of all', () => {
  const idle = Array.from({ length: SHARE }, () => add());
  const others = Array.from({ length: MAX - SHARE }, (_, owner) => add(`${owner}`));
  for (const session of others) session.isHeld = true;
  mock.timers.setTime(Date.now() + LIMITS.sessionParkMs - 1);
  mock.timers.setTime(Date.now() + IDLE_MS);
  add();
  assert.equal(
    [idle.some(({ endReason }) => endReason === undefined), others[0]?.endReason],
    [false, undefined],
  );
});

test('ends the unused session, and not one that is held or used', async () => {
  const [idle, held, used] = [add(), add(), add()];
  held.isHeld = true;
  for (let passedMs = 0; passedMs <= IDLE_MS + LIMITS.sessionParkMs; passedMs += LIMITS.sessionParkMs) {
    mock.timers.tick(LIMITS.sessionParkMs);
    harness.sessions.used(used);
    await settled();
  }
  assert.equal(
    [idle, held, used].map(({ endReason }) => endReason),
    ['it was idle for too long', undefined, undefined],
  );
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

test('waits for calls no longer than the grace', async () => {
  const busy = add();
  busy.calls = 1;
  const closed = harness.sessions.closeAll(1_000);
  await settled();
  assert.is(busy.endReason, undefined);
  mock.timers.tick(1_000);
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

test.run();
