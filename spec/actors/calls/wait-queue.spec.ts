// The queue: owners take turns, the calls of one owner are served in order of arrival; bounded in length. Time is simulated.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { type QueuedCall, type QueueTarget, WaitQueue } from '../../../src/actors/calls/wait-queue.ts';
import { CallCounter } from '../../../src/actors/instances/call-counter.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { simulateTime } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('wait queue');
/** Has capacity for every owner, and no owner is below its share. */
const TARGET: QueueTarget = { hasCapacityFor: () => true, isBelowShare: () => false };
let queue = new WaitQueue();
let received: string[] = [];

/** A call that records what happens to it. It leaves the queue when it is offered capacity, as calls do when they are sent. */
class Queued implements QueuedCall {
  readonly name: string;
  readonly ownerId: string;
  target: QueueTarget | undefined;

  constructor(name: string, ownerId = 'ann') {
    this.name = name;
    this.ownerId = ownerId;
  }

  waitsFor(target: QueueTarget): boolean {
    return this.target === undefined || this.target === target;
  }

  tryNow(): boolean {
    received.push(this.name);
    queue.leave(this);
    return true;
  }

  refuse(): void {
    received.push(`${this.name} gave up`);
  }
}

simulateTime(test, () => {
  queue = new WaitQueue();
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

test('gives offered capacity to the next call that waits for that instance', () => {
  const taken: string[] = [];
  const offering = (name: string, target: QueueTarget) => ({
    target,
    yield: () => {
      taken.push(name);
      queue.advance(target);
    },
  });
  const other = { ...TARGET };
  const [far, first, second] = [
    offering('far', other),
    offering('first', TARGET),
    offering('second', TARGET),
  ];
  for (const offer of [far, first, second]) queue.offer(offer);
  assert.equal(taken, [], 'no call waits');
  const call = new Queued('a');
  call.target = TARGET;
  queue.join(call, 100);
  queue.claim(call);
  assert.equal([taken, received], [['first'], ['a']]);
  queue.withdraw(second);
  const late = new Queued('b');
  late.target = TARGET;
  queue.join(late, 100);
  assert.is(queue.advance(other), false, 'the call cannot use it');
  queue.claim(late);
  assert.equal([taken, queue.length], [['first'], 1]);
  queue.offer(second);
  assert.equal(taken, ['first', 'second']);
  assert.equal(received, ['a', 'b']);
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
      assert.equal([queue.length, model.slots.working], [0, 0]);
    }),
    { numRuns: 60, seed: 41 },
  );
});

test.run();

/** One instance and its queue: calls arrive and end. Checks, for each call served, that no waiting owner was passed unfairly. */
class Model {
  readonly slots = new CallCounter();
  readonly running: string[] = [];
  /** Waiting owners, each with how often every other owner was served although this one could have been. */
  readonly #passed = new Map<string, Map<string, number>>();

  come(ownerId: string): void {
    const most = LIMITS.inFlightPerInstance + LIMITS.inFlightReserve;
    if (this.slots.hasCapacityFor(ownerId)) this.#begin(ownerId);
    else {
      const call: QueuedCall = {
        ownerId,
        waitsFor: () => true,
        tryNow: () => {
          queue.leave(call);
          this.#served(ownerId);
          this.#begin(ownerId);
          return true;
        },
        refuse: () => {},
      };
      if (queue.join(call, LIMITS.queuedPerInstance) && !this.#passed.has(ownerId))
        this.#passed.set(ownerId, new Map());
    }
    assert.ok(this.slots.working <= most);
    assert.ok(queue.length <= LIMITS.queuedPerInstance);
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
    isBelowShare: () => false,
    hasCapacityFor: (asked) => {
      isWaiting ||= asked === ownerId;
      return false;
    },
  });
  return isWaiting;
}
