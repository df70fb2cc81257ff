// Sessions on the shelf: bounded, found by id, ended when nobody used them.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { SessionShelf, type Shares, type Shelved } from '../../src/protocol/session-shelf.ts';
import { settled } from '../actors/instance-stage.ts';
import { suite } from '../helpers/suite.ts';
import { ListingBackends, ListingSession, PROFILE } from './listing-backends.ts';

const test = suite('session shelf');

class Held extends ListingSession implements Shelved {
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

function staged(shares?: Shares) {
  const backends = new ListingBackends({});
  const clock = { nowMs: 0, ring: () => {}, armed: 0 };
  const shelf = new SessionShelf<Held>({
    maxSessions: 2,
    idleMs: 1_000,
    shares,
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

const isThere = (shelf: SessionShelf<Held>, { id }: Held) => shelf.take(id) !== undefined;

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

test.run();
