import * as assert from 'uvu/assert';
import { ByteBudget, memoryBounds } from '../../src/domain/held-bytes.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { suite } from '../helpers/suite.ts';

const GIB = 1024 ** 3;
const test = suite('a budget of bytes');

test('refuses what exceeds the bound of one owner, and serves the others', () => {
  const budget = new ByteBudget({ totalBytes: 100, ownerBytes: 40 });
  assert.ok(budget.take('a', 40));
  assert.not(budget.take('a', 1));
  assert.ok(budget.take('b', 40));
  assert.is(budget.heldBytes, 80);
});

test('refuses what exceeds the total, and counts nothing then', () => {
  const budget = new ByteBudget({ totalBytes: 100, ownerBytes: 100 });
  assert.ok(budget.take('a', 90));
  assert.not(budget.take('b', 11));
  assert.is(budget.heldBy('b'), 0);
  assert.ok(budget.take('b', 10));
});

test('forgets an owner that gave everything back', () => {
  const budget = new ByteBudget({ totalBytes: 100, ownerBytes: 100 });
  budget.take('a', 10);
  budget.take('b', 30);
  assert.is(budget.greatestOwner, 'b');
  budget.giveBack('b', 30);
  assert.is(budget.greatestOwner, 'a');
  budget.giveBack('a', 10);
  assert.is(budget.greatestOwner, undefined);
  assert.is(budget.heldBytes, 0);
});

test('follows from the memory, and has room for one message of the greatest size', () => {
  const { requests, backendAnswers } = memoryBounds(GIB);
  assert.equal(requests, { totalBytes: GIB / 8, ownerBytes: GIB / 32 });
  assert.equal(backendAnswers, { totalBytes: GIB / 8, ownerBytes: LIMITS.backendMessageBytes });
  const small = memoryBounds(0.1 * GIB);
  assert.is(small.backendAnswers.totalBytes, LIMITS.backendMessageBytes);
  assert.ok(small.requests.ownerBytes >= LIMITS.requestBodyBytes);
});

test.run();
