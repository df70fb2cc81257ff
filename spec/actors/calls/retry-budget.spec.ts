// How many calls may be repeated.

import * as assert from 'uvu/assert';
import { RetryBudget } from '../../../src/actors/calls/retry-budget.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the retry budget');

test('the budget forgets calls and repeats after 10 s', () => {
  let nowMs = 500;
  const budget = new RetryBudget(() => nowMs);
  call(budget, 100);
  assert.is(repeats(budget), 30);
  nowMs = 9_999;
  assert.is(repeats(budget), 0);
  nowMs = 10_000;
  assert.is(repeats(budget), 10);
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
