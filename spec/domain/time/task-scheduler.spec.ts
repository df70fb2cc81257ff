// Which tasks run at once, which wait for a later turn, and how walks alternate. The spec simulates the turns.

import { mock } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { TaskScheduler, type TaskSchedulerOptions } from '../../../src/domain/time/task-scheduler.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('task scheduler');

test('runs perTurn tasks at once, and the rest perTurn in each turn, in order', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: 2 });
  for (let number = 1; number <= 7; number += 1) scheduler.run(task(number));
  assert.equal([done, scheduler.waiting], [[1, 2], 5]);
  await turn();
  await turn();
  assert.equal(done, [1, 2, 3, 4]);
  await turn();
  await turn();
  assert.equal([done, scheduler.waiting], [[1, 2, 3, 4, 5, 6, 7], 0]);
});

test('starts no further task in a turn that took too long, but at least one per turn', async () => {
  const { scheduler, turn, done, task, clock } = setUp({ perTurn: 10, turnMs: 5 });
  const slow = (number: number) => () => {
    clock.nowMs += 3;
    task(number)();
  };
  for (let number = 1; number <= 5; number += 1) scheduler.run(slow(number));
  assert.equal(done, [1, 2]);
  await turn();
  await turn();
  assert.equal(done, [1, 2, 3, 4]);
  await turn();
  assert.equal(done, [1, 2, 3, 4, 5]);
});

test('adapts the tasks per turn to the number that wait', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: (waiting) => (waiting < 3 ? 2 : 1) });
  for (let number = 1; number <= 6; number += 1) scheduler.run(task(number));
  const counts = [done.length];
  for (let turns = 0; turns < 8; turns += 1) {
    await turn();
    if (done.length > (counts.at(-1) ?? 0)) counts.push(done.length);
  }
  assert.equal(counts, [2, 3, 4, 6]);
});

test('resolves turn() in the turn of the caller', async () => {
  const { scheduler, turn, done } = setUp({ perTurn: 1 });
  assert.is(scheduler.turn(), undefined);
  void scheduler.turn()?.then(() => done.push(1));
  await turn();
  assert.equal(done, []);
  await turn();
  assert.equal(done, [1]);
});

test('visits all items, perTurn in each turn, and waits for the promises of the visits', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: 2 });
  const begun = Promise.withResolvers<void>();
  let isOver = false;
  const walk = scheduler.each([1, 2, 3, 4], (number) => {
    task(number)();
    return begun.promise;
  });
  void walk.then(() => {
    isOver = true;
  });
  assert.equal(done, [1, 2]);
  for (let turns = 0; turns < 4; turns += 1) await turn();
  assert.equal([done, isOver], [[1, 2, 3, 4], false]);
  begun.resolve();
  await walk;
  await scheduler.each([], () => done.push(0));
  assert.is(done.length, 4);
});

test('alternates between several walks', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: 1 });
  void scheduler.each([1, 2, 3], (number) => task(number)());
  void scheduler.each([10, 20], (number) => task(number)());
  for (let turns = 0; turns < 12; turns += 1) await turn();
  assert.equal(done, [1, 2, 10, 3, 20]);
});

test('counts an item as the number of tasks that it costs', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: 6 });
  const walk = scheduler.each(
    [1, 2, 3, 4, 5, 6, 7],
    (number) => task(number)(),
    (number) => (number < 6 ? 3 : 1),
  );
  const turns = [done.splice(0)];
  while (turns.flat().length < 7) {
    await turn();
    if (done.length > 0) turns.push(done.splice(0));
  }
  await walk;
  assert.equal(turns, [
    [1, 2],
    [3, 4],
    [5, 6, 7],
  ]);
});

test('takes fewer costly items, and as many other tasks, after turns that took long, until turns are short again', async () => {
  const { scheduler, turn, done, task, clock } = setUp({ perTurn: 20, turnMs: 10 });
  const items = Array.from({ length: 200 }, (_, index) => index);
  void scheduler.each(
    items,
    (number) => task(number)(),
    () => 5,
  );
  /** How many are visited in each turn, while what they cause takes this long in each. */
  const visitedWhile = async (laterMs: number, turns: number): Promise<number[]> => {
    const counts: number[] = [];
    for (let count = 0; count < turns; count += 1) {
      done.length = 0;
      clock.nowMs += laterMs;
      await turn();
      counts.push(done.length);
    }
    return counts;
  };
  done.length = 0;
  assert.equal(await visitedWhile(30, 4), [0, 4, 4, 4]);
  assert.equal(await visitedWhile(31, 5), [4, 3, 2, 2, 2]);
  const recovering = await visitedWhile(5, 30);
  assert.equal([recovering[0], recovering.at(-1)], [2, 4]);
  assert.equal(recovering, recovering.toSorted());

  const {
    scheduler: other,
    turn: otherTurn,
    done: cheap,
    task: cheapTask,
    clock: otherClock,
  } = setUp({ perTurn: 4, turnMs: 10 });
  for (let number = 0; number < 20; number += 1) other.run(cheapTask(number));
  for (let turns = 0; turns < 3; turns += 1) {
    otherClock.nowMs += 300;
    await otherTurn();
  }
  assert.is(cheap.length, 12);
});

test('rejects a walk with the error of a visit, at once or later, and continues other tasks', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: 2 });
  const failing = (at: number) => (number: number) => {
    if (number === at) throw new Error(`failed at ${number}`);
    task(number)();
  };
  const walks = [scheduler.each([1], failing(1)), scheduler.each([2, 3, 4], failing(3))];
  scheduler.run(task(9));
  const outcomes = Promise.allSettled(walks);
  for (let turns = 0; turns < 6; turns += 1) await turn();
  const said = (await outcomes).map((outcome) => outcome.status === 'rejected' && String(outcome.reason));
  assert.equal(said, ['Error: failed at 1', 'Error: failed at 3']);
  assert.equal(done, [2, 9]);
});

test('takes its turns in real time, even if it was created under simulated timers', async () => {
  mock.timers.enable({ apis: ['setImmediate'] });
  const done: number[] = [];
  const scheduler = new TaskScheduler({ perTurn: 1 });
  scheduler.run(() => done.push(1));
  scheduler.run(() => done.push(2));
  mock.timers.reset();
  for (let turns = 0; turns < 3; turns += 1) await immediate();
  assert.equal(done, [1, 2]);
});

test('causes no unhandled rejection while a walk continues', async () => {
  const { scheduler, turn, done, task } = setUp({ perTurn: 1 });
  const unheard: unknown[] = [];
  const hear = (reason: unknown) => void unheard.push(reason);
  process.on('unhandledRejection', hear);
  try {
    const walk = scheduler.each([1, 2, 3], async (number) => {
      task(number)();
      if (number === 1) throw new Error('failed at 1');
    });
    await immediate(); // when Node reports unhandled rejections
    const outcome = Promise.allSettled([walk]);
    for (let turns = 0; turns < 6; turns += 1) await turn();
    assert.equal([done, unheard], [[1, 2, 3], []]);
    const [said] = await outcome;
    assert.is(said?.status === 'rejected' && String(said.reason), 'Error: failed at 1');
  } finally {
    process.off('unhandledRejection', hear);
  }
});

test('those that bring work without end go on in turns, and get half of the time together', () => {
  for (const count of [1, 2, 20]) {
    let nowMs = 0;
    const scheduler = new TaskScheduler({ now: () => nowMs });
    const all = Array.from({ length: count }, (_, index) => ({
      tookMs: 1 + (index % 3),
      goesOnAtMs: 0,
      pieces: 0,
    }));
    let workedMs = 0;
    while (nowMs < 10_000) {
      const [next] = all.toSorted((a, b) => a.goesOnAtMs - b.goesOnAtMs);
      if (next === undefined) return;
      nowMs = Math.max(nowMs, next.goesOnAtMs) + next.tookMs;
      workedMs += next.tookMs;
      next.pieces += 1;
      next.goesOnAtMs = nowMs + scheduler.restAfter(next.tookMs);
    }
    const share = workedMs / nowMs;
    assert.ok(share > 0.45 && share < 0.55, `${count} take ${share} of the time`);
    const pieces = all.map((one) => one.pieces);
    assert.ok(Math.max(...pieces) - Math.min(...pieces) <= 5, `they take turns: ${pieces}`);
  }
});

test('little work that others bring needs no rest, nor does a short burst', () => {
  let nowMs = 0;
  const scheduler = new TaskScheduler({ now: () => nowMs });
  for (let piece = 0; piece < 1_000; piece += 1) {
    assert.is(scheduler.restAfter(1), 0);
    nowMs += 3;
  }
  assert.equal(
    [1, 1, 1, 1, 1, 1].map((tookMs) => scheduler.restAfter(tookMs) > 0),
    [...[false, false, false, false, false], true],
  );
});

test.run();

function setUp({
  perTurn,
  turnMs = 1_000,
}: Required<Pick<TaskSchedulerOptions, 'perTurn'>> & Pick<TaskSchedulerOptions, 'turnMs'>) {
  const clock = { nowMs: 0 };
  const done: number[] = [];
  let next: (() => void)[] = [];
  const scheduler = new TaskScheduler({
    perTurn,
    turnMs,
    nextTurn: (run) => next.push(run),
    now: () => clock.nowMs,
  });
  /** Runs all scheduled functions, each followed by its microtasks. */
  const turn = async (): Promise<void> => {
    const runs = next;
    next = [];
    for (const run of runs) {
      run();
      for (let microtasks = 0; microtasks < 5; microtasks += 1) await undefined;
    }
  };
  const task = (number: number) => () => void done.push(number);
  return { scheduler, turn, done, task, clock };
}
