// The places for requests to servers that outsiders name.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { type OutsidePlace, OutsidePlaces } from '../../../src/net/outside/outside-places.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('places for requests to servers that outsiders name');

test('silent servers have few places, and leave the others to servers that answer', async () => {
  let nowMs = 0;
  const places = new OutsidePlaces({ ...systemClock, now: () => nowMs });
  const leaves = Array.from({ length: 100 }, (_, index) => places.take(`silent-${index}`));
  const taken = leaves.flatMap((leave) => leave ?? []);
  assert.is(taken.length, 40, 'of servers that were never asked');
  for (const leave of taken) leave(true);
  for (const [place, name] of [`silent-1`, `silent-2`, 'good'].entries()) {
    const leave = places.take(name);
    assert.ok(leave, `${place}`);
    leave(name !== 'good');
  }
  const again = Array.from({ length: 40 }, (_, index) => places.take(`silent-${index}`));
  assert.is(again.filter((leave) => leave !== undefined).length, 20);
  assert.ok(places.take('good'), 'one that answers has its places');
  for (const leave of again) leave?.(false);
  assert.is(
    Array.from({ length: 40 }, () => places.take('good')).filter(Boolean).length,
    19,
    'of one server',
  );
  nowMs = 60_000;
  const later = Array.from({ length: 40 }, (_, index) => places.take(`silent-${index}`));
  assert.is(later.filter(Boolean).length, 40, 'a minute later they may have recovered');
});

simulateTime(test);

/** Requests that wait for places of these servers, which are given back by `leave`. */
function waiters(places: OutsidePlaces) {
  const held: [string, OutsidePlace][] = [];
  const refused: string[] = [];
  return {
    refused,
    wait: (server: string, count: number) => {
      for (let n = 0; n < count; n += 1)
        void places
          .wait(server, 10_000)
          .then((place) => (place === undefined ? refused.push(server) : held.push([server, place])));
    },
    held: () =>
      held
        .map(([server]) => server)
        .sort()
        .join(' '),
    leave: (count: number) => {
      for (const [, place] of held.splice(0, count)) place(false);
    },
  };
}

test('requests that wait get the places that are given back, and leave a part to those that do not wait', async () => {
  const places = new OutsidePlaces(simulatedClock);
  const { wait, held, leave, refused } = waiters(places);
  wait('busy', 40);
  await pass(0);
  assert.is(held(), Array(16).fill('busy').join(' '));
  assert.is(Array.from({ length: 9 }, () => places.take('busy')).filter(Boolean).length, 4);
  leave(10);
  await pass(0);
  assert.is(held().split(' ').length, 12, 'six more, beside the four that did not wait');
  leave(12);
  await pass(9_999);
  assert.equal([held().split(' ').length, refused.length], [12, 0]);
  await pass(1);
  assert.equal(refused.length, 6);
});

test('a place that is given back goes to the server that has the fewest', async () => {
  const places = new OutsidePlaces(simulatedClock);
  const { wait, held, leave } = waiters(places);
  for (const server of ['a', 'b']) wait(server, 40);
  await pass(0);
  assert.is(held().split(' ').length, 32);
  wait('c', 2);
  await pass(0);
  assert.not.match(held(), /c/);
  leave(2);
  await pass(0);
  assert.match(held(), /c c$/);
});

test('requests that wait for a silent server leave places to another one', async () => {
  const places = new OutsidePlaces(simulatedClock);
  for (const server of ['a', 'b']) places.take(server)?.(true);
  const { wait, held } = waiters(places);
  wait('a', 40);
  wait('b', 40);
  await pass(0);
  assert.is(held(), 'a a a a a a a a b b b b b b b b');
  assert.ok(places.take('a'));
});

test.run();
