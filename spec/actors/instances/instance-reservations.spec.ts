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

check(
  'says to a call between two rounds when its session is over, and counts it no longer',
  async (harness) => {
    const ends: string[] = [];
    const reservation = (name: string) =>
      harness.ref.reserve('ann').subscribe({ complete: () => ends.push(name) });
    reservation('before the first session');
    const transport = await harness.healthy();
    reservation('lost');
    harness.ref.drain();
    harness.ref.resume();
    assert.equal(ends, ['before the first session']);
    transport.lose();
    await settled();
    reservation('while there is none');
    assert.equal(ends, ['before the first session', 'lost', 'while there is none']);
    assert.is(harness.ref.snapshot(1).inFlight, 0);
  },
);

check('looks at its instance once, however many stay, and no longer than they do', async (harness) => {
  await harness.healthy();
  const observers = countObservers(harness);
  const reservations = subscribed(100, () => harness.ref.reserve(ANONYMOUS.id));
  assert.equal([observers.now, observers.ever], [1, 1]);
  const heard = harness.ref.messages$.subscribe();
  assert.is(observers.now, 1, 'what a session is listened to by is looked for in the same place');
  for (const reservation of reservations) reservation.unsubscribe();
  heard.unsubscribe();
  assert.is(observers.now, 0);
});

check(
  'a call in a conversation that stands alone waits whatever session is there, until the instance ends',
  async (harness) => {
    const own = Object.assign(new ScriptedTransport(), { standsAlone: true });
    const reservation = harness.ref.reserve('ann', false, own).subscribe();
    const first = await harness.healthy();
    first.lose();
    await harness.pass(500);
    await harness.healthy();
    assert.equal([reservation.closed, harness.ref.snapshot(1).inFlight], [false, 1]);
    harness.ref.leave(0);
    await harness.pass(1);
    assert.equal(
      [reservation.closed, harness.ref.reserve('ann', false, own).subscribe().closed],
      [true, true],
    );
  },
);

check('keeps so many in all, and one that goes on has its place already', async (harness) => {
  await harness.healthy();
  const all = subscribed(LIMITS.parkedCalls, () => harness.ref.reserve(ANONYMOUS.id));
  assert.match(refusalOf(harness.ref.reserve('bob')), /^QUEUE_FULL unknown: 1000 calls/);
  const next = harness.ref.reserve(ANONYMOUS.id, true).subscribe();
  assert.equal([next.closed, harness.ref.snapshot(1).inFlight], [false, LIMITS.parkedCalls + 1]);
  for (const reservation of [...all, next]) reservation.unsubscribe();
  assert.is(refusalOf(harness.ref.reserve('bob')), 'none');
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
