// A call between two rounds, as its instance knows it: shown, and told when there is nothing left to wait for. How long the
// instance waits for it is in instance.machine-duty.spec.ts.

import type { Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance stay');
const check = onHarness(test);

check('shows a call between two rounds as in flight, and gives it no place', async (stage) => {
  await stage.healthy();
  const reservations = [stage.ref.reserve('ann').subscribe(), stage.ref.reserve('ann').subscribe()];
  assert.equal([stage.ref.snapshot(1).inFlight, stage.ref.inFlight, stage.ref.carried], [2, 0, 0]);
  for (const reservation of reservations) reservation.unsubscribe();
  assert.is(stage.ref.snapshot(1).inFlight, 0);
});

check(
  'says to a call between two rounds when its session is over, and counts it no longer',
  async (stage) => {
    const ends: string[] = [];
    const reservation = (name: string) =>
      stage.ref.reserve('ann').subscribe({ complete: () => ends.push(name) });
    reservation('before the first session');
    const transport = await stage.healthy();
    reservation('lost');
    stage.ref.drain();
    stage.ref.resume();
    assert.equal(ends, ['before the first session']);
    transport.lose();
    await settled();
    reservation('while there is none');
    assert.equal(ends, ['before the first session', 'lost', 'while there is none']);
    assert.is(stage.ref.snapshot(1).inFlight, 0);
  },
);

check('looks at its instance once, however many stay, and no longer than they do', async (stage) => {
  await stage.healthy();
  const observers = countObservers(stage);
  const reservations = subscribed(100, () => stage.ref.reserve(ANONYMOUS.id));
  assert.equal([observers.now, observers.ever], [1, 1]);
  const heard = stage.ref.messages$.subscribe();
  assert.is(observers.now, 1, 'what a session is listened to by is looked for in the same place');
  for (const reservation of reservations) reservation.unsubscribe();
  heard.unsubscribe();
  assert.is(observers.now, 0);
});

check('tells only those whose session is over, while others begin in the next one', async (stage) => {
  const first = await stage.healthy();
  const ends: string[] = [];
  const reservation = (name: string) =>
    stage.ref.reserve('ann').subscribe({
      complete: () => {
        ends.push(name);
        if (name === 'first') again = reservation('second');
      },
    });
  let again: { closed: boolean } | undefined;
  reservation('first');
  first.lose();
  await settled();
  assert.equal([ends, again?.closed], [['first', 'second'], true], 'there is no next one yet');
  await stage.pass(500);
  await stage.healthy();
  again = reservation('third');
  assert.equal([again.closed, stage.ref.snapshot(1).inFlight], [false, 1]);
  stage.ref.leave(0);
  await stage.pass(1);
  assert.equal([again.closed, reservation('after its end').closed], [true, true]);
});

check(
  'a call in a conversation that stands alone waits whatever session is there, until the instance ends',
  async (stage) => {
    const own = Object.assign(new ScriptedTransport(), { standsAlone: true });
    const reservation = stage.ref.reserve('ann', false, own).subscribe();
    const first = await stage.healthy();
    first.lose();
    await stage.pass(500);
    await stage.healthy();
    assert.equal([reservation.closed, stage.ref.snapshot(1).inFlight], [false, 1]);
    stage.ref.leave(0);
    await stage.pass(1);
    assert.equal([reservation.closed, stage.ref.reserve('ann', false, own).subscribe().closed], [true, true]);
  },
);

check('keeps a share of the places for others, and takes back what was left', async (stage) => {
  await stage.healthy();
  const share = Math.floor(LIMITS.parkedCalls * LIMITS.ownerShare);
  const theirs = subscribed(share, () => stage.ref.reserve('ann'));
  assert.match(refusalOf(stage.ref.reserve('ann')), /^QUEUE_FULL unknown: 250 of your calls/);
  assert.is(stage.ref.snapshot(1).inFlight, share, 'who was refused is not counted');
  const others = subscribed(1, () => stage.ref.reserve('bob'));
  theirs.pop()?.unsubscribe();
  theirs.push(...subscribed(1, () => stage.ref.reserve('ann')));
  assert.match(refusalOf(stage.ref.reserve('ann')), 'QUEUE_FULL');
  for (const reservation of [...theirs, ...others]) reservation.unsubscribe();
});

check('keeps so many in all, and one that goes on has its place already', async (stage) => {
  await stage.healthy();
  const all = subscribed(LIMITS.parkedCalls, () => stage.ref.reserve(ANONYMOUS.id));
  assert.match(refusalOf(stage.ref.reserve('bob')), /^QUEUE_FULL unknown: 1000 calls/);
  const next = stage.ref.reserve(ANONYMOUS.id, true).subscribe();
  assert.equal([next.closed, stage.ref.snapshot(1).inFlight], [false, LIMITS.parkedCalls + 1]);
  for (const reservation of [...all, next]) reservation.unsubscribe();
  assert.is(refusalOf(stage.ref.reserve('bob')), 'none');
});

test.run();

/** How many observe the actor of the instance: each of them is told of every event of every call. */
function countObservers({ actor }: Harness) {
  const count = { now: 0, ever: 0 };
  const subscribe = actor.subscribe.bind(actor);
  actor.subscribe = ((...observer: Parameters<typeof subscribe>) => {
    count.now += 1;
    count.ever += 1;
    const subscription = subscribe(...observer);
    const unsubscribe = (): void => {
      count.now -= 1;
      subscription.unsubscribe();
    };
    return { unsubscribe };
  }) as typeof actor.subscribe;
  return count;
}

function subscribed(count: number, reservation: () => Observable<never>) {
  return Array.from({ length: count }, () => reservation().subscribe());
}

/** Why there is no place, at once; `none`: there is one. */
function refusalOf(stay$: Observable<never>): string {
  let refusal = 'none';
  const subscription = stay$.subscribe({
    error: (thrown: unknown) => {
      const { code, delivered, message } = asGatewayError(thrown);
      refusal = `${code} ${delivered}: ${message}`;
    },
  });
  subscription.unsubscribe();
  return refusal;
}
