// How many uncertain calls may be repeated: 20 % of the calls of the last 10 s, and 10.

import * as assert from 'uvu/assert';
import { RetryBudget } from '../../../src/actors/calls/retry.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('retry budget');

test('allows 10 repeats when nothing was called', () => {
  assert.is(repeats(new RetryBudget(() => 0)), 10);
});

test('allows a repeat more for every 5 calls', () => {
  const budget = new RetryBudget(() => 0);
  call(budget, 100);
  assert.is(repeats(budget), 30);
  call(budget, 4);
  assert.is(repeats(budget), 0);
  call(budget, 1);
  assert.is(repeats(budget), 1);
});

test('forgets calls and repeats after 10 s', () => {
  let nowMs = 500;
  const budget = new RetryBudget(() => nowMs);
  call(budget, 100);
  assert.is(repeats(budget), 30);
  nowMs = 9_999;
  assert.is(repeats(budget), 0);
  nowMs = 10_000;
  assert.is(repeats(budget), 10);
});

test('forgets second by second', () => {
  let nowMs = 0;
  const budget = new RetryBudget(() => nowMs);
  for (nowMs = 0; nowMs < 10_000; nowMs += 1_000) call(budget, 10);
  nowMs = 9_999;
  assert.is(repeats(budget), 30);
  nowMs = 10_000; // the first 10 calls are forgotten, the repeats are not
  assert.is(repeats(budget), 0);
  nowMs = 19_999;
  assert.is(repeats(budget), 10);
});

test('starts anew after a long silence', () => {
  let nowMs = 3_000;
  const budget = new RetryBudget(() => nowMs);
  call(budget, 1_000);
  repeats(budget);
  nowMs = 3_000_000;
  assert.is(repeats(budget), 10);
});

test('works on a clock that does not start at zero', () => {
  let nowMs = 123_456_789;
  const budget = new RetryBudget(() => nowMs);
  call(budget, 50);
  nowMs += 8_000;
  assert.is(repeats(budget), 20);
});

test.run();

function call(budget: RetryBudget, times: number): void {
  for (let time = 0; time < times; time += 1) budget.countCall();
}

/** Repeats until the budget says no. */
function repeats(budget: RetryBudget): number {
  for (let count = 0; count < 10_000; count += 1) if (!budget.take()) return count;
  throw new Error('the budget has no end');
}
