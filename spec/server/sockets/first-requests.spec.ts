// The order in which the first requests of connections begin, and how many in a round of the event loop.

import * as assert from 'uvu/assert';
import { FirstRequests } from '../../../src/server/sockets/first-requests.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('first requests of connections');

/** First requests whose rounds the spec runs; `begun`: their networks, in order. */
function setUp() {
  const rounds: (() => void)[] = [];
  const begun: string[] = [];
  const scheduler = { run: (begin: () => void) => begin(), waiting: 0 };
  const first = new FirstRequests(scheduler, (run) => rounds.push(run));
  const add = (network: string, count: number, hasLeft = false) => {
    for (let number = 0; number < count; number += 1)
      first.add(network, { isOver: () => hasLeft, begin: () => begun.push(network) });
  };
  const round = (isArriving = false) => {
    if (isArriving) first.arrived();
    for (const run of rounds.splice(0)) run();
    return begun.splice(0);
  };
  return { add, round, rounds, scheduler };
}

test('begin in the next round, 64 in each', () => {
  const { add, round, rounds } = setUp();
  add('a', 100);
  assert.equal([round().length, round().length, rounds.length], [64, 36, 0]);
});

test('begin in every fourth round while connections arrive and many wait, those of different networks in turn', () => {
  const { add, round } = setUp();
  add('flood', 1_000);
  add('other', 2);
  const seen = Array.from({ length: 16 }, () => round(true));
  assert.equal(seen.flat(), ['flood', 'other', 'flood', 'other']);
  assert.equal(seen.filter(({ length }) => length > 0).length, 4);
  assert.is(round().length, 64); // nothing arrives any more
});

test('are not held while few wait, nor while more wait than the system would queue', () => {
  for (const count of [16, 4_096]) {
    const { add, round } = setUp();
    add('a', count);
    assert.is(round(true).length, Math.min(64, count), String(count));
  }
});

test('begin as others leave the queue of the scheduler, which knows no networks, but one in each round', () => {
  const { add, round, scheduler } = setUp();
  add('a', 1_000);
  const begunWhile = (waiting: number) => {
    scheduler.waiting = waiting;
    return round().length;
  };
  assert.equal([0, 256, 300, 320, 5_000].map(begunWhile), [64, 64, 20, 1, 1]);
});

test('of clients that have left take no turn', () => {
  const { add, round, rounds } = setUp();
  add('a', 3_000, true);
  add('b', 1);
  add('a', 1);
  const seen = Array.from({ length: 8 }, () => round(true)).flat();
  assert.equal([seen, rounds.length], [['a', 'b'], 0]);
});

test.run();
