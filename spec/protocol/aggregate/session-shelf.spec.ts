// Sessions on the shelf: bounded, found by id, ended when nobody used them.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import {
  SessionTable,
  type Shares,
  type TableSession,
} from '../../../src/protocol/aggregate/session-table.ts';
import { settled } from '../../actors/instances/instance-stage.ts';
import { suite } from '../../helpers/suite.ts';
import { steadyPace, Turns } from '../../helpers/turns.ts';
import { ListingBackends, ListingSession, PROFILE } from '../listing-backends.ts';

const test = suite('session shelf');
/** What is ended in one turn of the event loop. */
const PER_TURN = 5;

class Held extends ListingSession implements TableSession {
  isHeld = false;
  readonly #drained = Promise.withResolvers<void>();
  #calls = 0;

  begin() {
    this.#calls += 1;
  }

  finish() {
    this.#calls -= 1;
    this.#drained.resolve();
  }

  drained() {
    return this.#calls === 0 ? Promise.resolve() : this.#drained.promise;
  }
}

function staged(shares?: Shares, maxSessions = 2) {
  const backends = new ListingBackends({});
  const clock = { nowMs: 0, ring: () => {}, armed: 0 };
  const shelf = new SessionTable<Held>({
    maxSessions,
    idleMs: 1_000,
    shares,
    scheduler: steadyPace(PER_TURN),
    now: () => clock.nowMs,
    alarm: (_waitMs, ring) => {
      clock.armed += 1;
      clock.ring = ring;
      return () => {
        clock.armed -= 1;
      };
    },
  });
  const put = (ownerId = 'user:ada') => {
    const session = new Held(backends, ownerId, PROFILE);
    backends.sessions.push(session);
    shelf.put(session);
    return session;
  };
  return { shelf, clock, put };
}

test('finds a session until it has ended', async () => {
  const { shelf, put } = staged();
  const session = put();
  assert.is(shelf.take(session.id), session);
  await session.close();
  assert.is(shelf.take(session.id), undefined);
});

test('has room for so many', () => {
  const { put } = staged();
  put();
  put();
  assert.throws(put, (error: { code: string }) => error.code === 'SESSION_LIMIT');
});

test('makes room by ending who was idle too long', async () => {
  const { clock, shelf, put } = staged();
  const [first, second] = [put(), put()];
  clock.nowMs = 500;
  shelf.take(second.id);
  clock.nowMs = 1_000;
  put();
  assert.is(await firstValueFrom(first.ended$), 'closed');
  assert.is(shelf.take(second.id), second);
});

test('ends idle ones by one timer, but nobody who is held', async () => {
  const { clock, shelf, put } = staged();
  const [first, second] = [put(), put()];
  second.isHeld = true;
  assert.is(clock.armed, 1);
  clock.nowMs = 1_000;
  clock.ring();
  assert.equal([shelf.take(first.id), shelf.take(second.id)], [undefined, second]);
});

const isThere = (shelf: SessionTable<Held>, { id }: Held) => shelf.take(id) !== undefined;

test('when it is closed refuses new ones, and ends all: who has a call under way, after that', async () => {
  const { clock, shelf, put } = staged();
  const [idle, busy] = [put(), put()];
  busy.begin();
  const closed = shelf.close(1_000);
  await settled();
  assert.equal([isThere(shelf, idle), isThere(shelf, busy)], [false, true]);
  assert.throws(put, (error: { code: string }) => error.code === 'SHUTTING_DOWN');
  busy.finish();
  await closed;
  assert.is(await firstValueFrom(busy.ended$), 'closed');
  assert.is(clock.armed, 0);
});

test('waits for calls no longer than the grace', async () => {
  const { clock, shelf, put } = staged();
  const busy = put();
  busy.begin();
  const closed = shelf.close(1_000);
  await settled();
  assert.ok(isThere(shelf, busy));
  clock.ring();
  await closed;
  assert.is(await firstValueFrom(busy.ended$), 'closed');
});

test('ends those of one owner', async () => {
  const { shelf, put } = staged();
  const [theirs, another] = [put(), put('user:eve')];
  await shelf.endOf('user:ada');
  assert.equal([isThere(shelf, theirs), isThere(shelf, another)], [false, true]);
});

test('asks for a share of the owner, and gives it back with the session', async () => {
  const held: string[] = [];
  const shares = {
    share: 1,
    isAll: false,
    isFull: (ownerId: string) => held.includes(ownerId),
    take: (ownerId: string) => held.push(ownerId),
    giveBack: (ownerId: string) => held.splice(held.indexOf(ownerId), 1),
  };
  const { put } = staged(shares);
  const session = put();
  assert.throws(put, /You have 1 sessions already/);
  put('user:bo');
  await session.close();
  assert.equal(held, ['user:bo']);
  put();
});

test('ends many together a few in a turn: of an owner, idle ones, and all', async () => {
  for (const end of ['endOf', 'expire', 'close']) {
    const { clock, shelf, put } = staged(undefined, 50);
    const turns = new Turns();
    for (let count = 0; count < 50; count += 1) put().ended$.subscribe(turns.note);
    if (end === 'endOf') await shelf.endOf('user:ada');
    if (end === 'close') await shelf.close(0);
    clock.nowMs = 1_000;
    if (end === 'expire') clock.ring();
    await turns.pass(20);
    assert.equal([end, turns.all, turns.fullest], [end, 50, PER_TURN]);
  }
});

test('keeps an idle one that is used again before it is its turn to end', async () => {
  for (const use of ['found', 'held']) {
    const { clock, shelf, put } = staged(undefined, 50);
    const all = Array.from({ length: PER_TURN + 1 }, () => put());
    const last = all.at(-1) ?? put();
    clock.nowMs = 1_000;
    clock.ring();
    if (use === 'held') last.isHeld = true;
    else assert.is(shelf.take(last.id), last);
    await new Turns().pass(5);
    assert.equal(
      all.map((session) => isThere(shelf, session)),
      all.map((session) => session === last),
    );
  }
});

test('makes room at once, though others wait for their turn to end: first what the owner himself left idle', async () => {
  const held: string[] = [];
  const shares = {
    share: 2,
    isAll: false,
    isFull: (ownerId: string) => held.filter((id) => id === ownerId).length >= 2,
    take: (ownerId: string) => held.push(ownerId),
    giveBack: (ownerId: string) => held.splice(held.indexOf(ownerId), 1),
  };
  const { clock, shelf, put } = staged(shares, 102);
  for (let count = 0; count < 100; count += 1) put(`user:${count}`);
  const idle = [put(), put()];
  clock.nowMs = 1_000;
  clock.ring(); // from here on the scheduler is busy
  const session = put();
  assert.equal([isThere(shelf, session), idle.some((one) => isThere(shelf, one))], [true, false]);
  await shelf.close(0);
});

test.run();
