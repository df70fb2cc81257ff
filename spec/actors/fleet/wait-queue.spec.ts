// The queue: owners take turns, the calls of one owner are served in order of arrival; bounded in length. Time is simulated.

import { mock } from 'node:test';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import {
  QUEUE_WAIT_MS,
  type QueueEntry,
  type QueueTarget,
  WaitQueue,
} from '../../../src/actors/fleet/wait-queue.ts';
import { CallCounter, MAX_QUEUED_PER_INSTANCE } from '../../../src/actors/instances/call-counter.ts';
import { grantPrincipalId } from '../../../src/domain/accounts/principal.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { spreadClock, systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('wait queue');
let queue = newQueue();
let received: string[] = [];
let last = 0;

/** A call that records what happens to it. It leaves the queue when it can have capacity, as calls do when they are sent. */
class Queued implements QueueEntry {
  readonly name: string;
  readonly ownerId: string;
  readonly number = numbers();
  endWait: QueueEntry['endWait'];
  readonly #target: FullTarget | undefined;
  readonly #served: () => void;

  constructor(name: string, ownerId = 'ann', target?: FullTarget, served = () => {}) {
    this.name = name;
    this.ownerId = ownerId;
    this.#target = target;
    this.#served = served;
  }

  mayTake(target: QueueTarget): boolean {
    return target === this.#target;
  }

  tryNow(): boolean {
    received.push(this.name);
    queue.leave(this);
    this.#served();
    if (this.#target !== undefined) this.#target.free -= 1;
    return true;
  }

  refuse(): void {
    received.push(`${this.name} gave up`);
    this.#served();
  }
}

/** Has room for a few calls, of any owner; no owner is below its share. */
class FullTarget implements QueueTarget {
  readonly id = 'a';
  free = 0;
  hasCapacityFor(): boolean {
    return this.free > 0;
  }
  isBelowShare(): boolean {
    return false;
  }
}

simulateTime(test, () => {
  queue = newQueue();
  received = [];
});

test('when full, refuses the newest call of the owner with most calls for an owner below its share', () => {
  for (const name of ['a1', 'a2', 'a3']) queue.join(new Queued(name, 'ann'), 4);
  queue.join(new Queued('b1', 'bob'), 4);
  assert.is(queue.join(new Queued('c1', 'cyd'), 4), true);
  assert.equal([received, queue.length], [['a3 gave up'], 4]);
  assert.is(queue.join(new Queued('b2', 'bob'), 4), false, 'two of four are more than a third');
  assert.is(queue.join(new Queued('a4', 'ann'), 4), false);
  assert.is(queue.join(new Queued('d1', 'dan'), 4), true);
  assert.is(queue.join(new Queued('e1', 'eve'), 4), false, 'there is less than one for each');
  assert.equal([received, queue.length], [['a3 gave up', 'a2 gave up'], 4]);
});

test('several clients of one user have one turn, and one part of the queue', () => {
  const target = new FullTarget();
  const user = (client: string) => grantPrincipalId(client, 'ann');
  for (const name of ['a1', 'a2', 'a3']) queue.join(new Queued(name, user(name), target), 4);
  for (const name of ['b1', 'b2']) queue.join(new Queued(name, 'bob', target), 4);
  assert.equal(received, ['a3 gave up']);
  target.free = 4;
  queue.advance(target);
  assert.equal(received.slice(1), ['a1', 'b1', 'a2', 'b2']);
});

test('gives yielded capacity to the next call that waits for that instance', () => {
  const taken: string[] = [];
  const [here, there] = [new FullTarget(), new FullTarget()];
  const yielding = (name: string, target: FullTarget) => ({
    target,
    yield: () => {
      taken.push(name);
      target.free += 1;
      queue.advance(target);
    },
  });
  const [far, first, second] = [yielding('far', there), yielding('first', here), yielding('second', here)];
  for (const call of [far, first, second]) queue.addYielding(call);
  assert.equal(taken, [], 'no call waits');
  queue.join(new Queued('a', 'ann', here), 100);
  assert.equal([taken, received], [['first'], ['a']]);
  queue.removeYielding(second);
  queue.join(new Queued('b', 'ann', here), 100);
  queue.advance(there); // the call cannot use it
  assert.equal([taken, queue.length], [['first'], 1]);
  queue.addYielding(second);
  assert.equal(taken, ['first', 'second']);
  assert.equal(received, ['a', 'b']);
});

test('serves, ends and lets time out a few of thousands of calls per turn of the event loop', async () => {
  const target = new FullTarget();
  const turns = new TurnCounter();
  const fill = () => {
    turns.all = 0;
    for (let call = 0; call < 2_000; call += 1) queue.join(new Queued('a', 'ann', target, turns.note), 2_000);
  };
  queue = newQueue(5);
  fill();
  target.free = 2_000;
  queue.advance(target);
  await turns.pass(500);
  fill();
  queue.reconsider();
  await turns.pass(500);
  assert.equal([turns.all, turns.fullest, queue.length], [2_000, 5, 0]);
  fill();
  mock.timers.tick(QUEUE_WAIT_MS);
  await turns.pass(500);
  assert.equal([turns.all, turns.fullest, queue.length], [2_000, 5, 0]);
});

test('asks each waiting call once per turn when an instance that none of them can use frees capacity many times', async () => {
  queue = newQueue(5);
  const [fallen, other] = [new FullTarget(), new FullTarget()];
  let asked = 0;
  for (let number = 0; number < 1_000; number += 1) {
    const call = new Queued('a', `owner ${number % 10}`, other);
    call.mayTake = (target) => {
      asked += 1;
      return target === other;
    };
    queue.join(call, 1_000);
  }
  fallen.free = 256;
  for (let call = 0; call < 256; call += 1) queue.advance(fallen);
  await passTurns(10);
  assert.ok(asked <= 12_000, `${asked} questions`); // of the tasks that run at once, and one for the rest
});

test('the calls of one owner are served in order of arrival, also one that has left and returns', () => {
  const target = new FullTarget();
  const [first, second, third] = [1, 2, 3].map((name) => new Queued(`a${name}`, 'ann', target));
  for (const call of [first, second, third]) if (call !== undefined) queue.join(call, 100);
  if (first !== undefined) queue.leave(first);
  if (first !== undefined) queue.join(first, 100);
  target.free = 3;
  queue.advance(target);
  assert.equal(received, ['a1', 'a2', 'a3']);
});

test('serves an owner below its share after at most one call of each other owner', () => {
  const operation = fc.record({
    kind: fc.constantFrom('come', 'come', 'end'),
    owner: fc.integer({ min: 0, max: 5 }),
    times: fc.integer({ min: 1, max: 60 }),
    which: fc.nat(10_000),
  });
  const operations = fc.array(operation, { minLength: 20, maxLength: 120 });
  fc.assert(
    fc.property(operations, (done) => {
      const model = new Model();
      for (const { kind, owner, times, which } of done) {
        for (let time = 0; time < times; time += 1) {
          if (kind === 'come') model.come(`owner ${owner}`);
          else model.end(which + time);
        }
      }
      while (model.running.length > 0) model.end(0);
      assert.equal([queue.length, model.slots.active], [0, 0]);
    }),
    { numRuns: 60, seed: 41 },
  );
});

test.run();

/** All tasks run at once, unless there is room for fewer in one turn of the event loop. */
function newQueue(perTurn = Number.POSITIVE_INFINITY): WaitQueue {
  const scheduler = untimedScheduler(perTurn);
  return new WaitQueue({ scheduler, clock: spreadClock(scheduler, systemClock) });
}

function numbers(): number {
  last += 1;
  return last;
}

/** One instance and its queue: calls arrive and end. Checks, for each call served, that no waiting owner was passed unfairly. */
class Model {
  readonly slots = Object.assign(new CallCounter(), { id: 'a' });
  readonly running: string[] = [];
  /** Waiting owners, each with how often every other owner was served although this one could have been. */
  readonly #passed = new Map<string, Map<string, number>>();

  come(ownerId: string): void {
    const most = LIMITS.inFlightPerInstance + LIMITS.inFlightHeadroom;
    if (this.slots.hasCapacityFor(ownerId)) this.#begin(ownerId);
    else {
      const call: QueueEntry = {
        ownerId,
        number: numbers(),
        mayTake: () => true,
        tryNow: () => {
          queue.leave(call);
          this.#served(ownerId);
          this.#begin(ownerId);
          return true;
        },
        refuse: () => {},
      };
      if (queue.join(call, MAX_QUEUED_PER_INSTANCE) && !this.#passed.has(ownerId))
        this.#passed.set(ownerId, new Map());
    }
    assert.ok(this.slots.active <= most);
    assert.ok(queue.length <= MAX_QUEUED_PER_INSTANCE);
  }

  end(which: number): void {
    const [ownerId] = this.running.splice(which % Math.max(1, this.running.length), 1);
    if (ownerId === undefined) return;
    this.slots.end(ownerId, { outcome: 'result', durationMs: 1 });
    queue.advance(this.slots);
  }

  #begin(ownerId: string): void {
    this.slots.begin(ownerId);
    this.running.push(ownerId);
  }

  #served(ownerId: string): void {
    this.#passed.delete(ownerId);
    for (const [waiting, passed] of this.#passed) {
      if (!this.slots.isBelowShare(waiting) || !this.slots.hasCapacityFor(waiting)) continue;
      const times = (passed.get(ownerId) ?? 0) + 1;
      assert.ok(times <= 1, `${waiting} waited for ${times} turns of ${ownerId}`);
      assert.ok(this.slots.isBelowShare(ownerId), `${ownerId} was served before ${waiting}`);
      passed.set(ownerId, times);
    }
    if (hasMore(ownerId)) this.#passed.set(ownerId, new Map());
  }
}

/** True while a call of this owner waits: the queue then asks whether there is capacity for the owner. */
function hasMore(ownerId: string): boolean {
  let isWaiting = false;
  queue.advance({
    id: 'a',
    isBelowShare: () => false,
    hasCapacityFor: (asked) => {
      isWaiting ||= asked === ownerId;
      return false;
    },
  });
  return isWaiting;
}
