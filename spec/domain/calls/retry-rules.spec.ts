// The rules of retries and hedges, for all that can fail and all that can be silent. What calls and openings make of them is in
// actors/calls and actors/sessions.

import * as assert from 'uvu/assert';
import { decideAfter, decideAtBound, mayHedge } from '../../../src/domain/calls/retry-rules.ts';
import { backendUnavailable } from '../../../src/domain/errors/error-catalogue.ts';
import type { Delivered } from '../../../src/domain/errors/errors.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('retry rules');

const failed = (delivered: Delivered, isRepeatable: boolean) => ({
  error: backendUnavailable('x', { delivered }),
  isRepeatable,
});

test('what did not arrive is done again, what may have arrived only if that does no harm, an answer never', () => {
  const rows = (['no', 'unknown', 'yes'] as const).map((delivered) =>
    [true, false].map((isRepeatable) => decideAfter(failed(delivered, isRepeatable))),
  );
  assert.equal(rows, [
    ['goOn', 'goOn'],
    ['goOn', 'giveUp'],
    ['giveUp', 'giveUp'],
  ]);
});

test('once the caller has messages of it, the failure is final', () => {
  assert.is(decideAfter({ ...failed('no', true), isAnswering: true }), 'giveUp');
});

test('an answer about the request is final, also for others under way; after any other failure they continue', () => {
  const next = (backendStatus: number, wasSent: boolean, hasOthers: boolean) => {
    const error = backendUnavailable('x', { delivered: 'no', backendStatus });
    return decideAfter({ error, isRepeatable: false, wasSent, hasOthers });
  };
  assert.equal([next(422, true, false), next(422, true, true)], ['giveUp', 'giveUp']);
  assert.equal(
    [next(422, false, false), next(503, true, false), next(404, true, false)],
    Array(3).fill('goOn'),
  );
  assert.equal([next(503, true, true), next(422, false, true)], ['keepOthers', 'keepOthers']);
  const answered = { ...failed('yes', false), hasOthers: true };
  assert.is(decideAfter(answered), 'keepOthers');
});

test('at the only instance it is done three times more, and not there once it may have arrived twice', () => {
  const next = (delivered: Delivered, retries: number, mayHaveArrived: 'here' | 'earlier' | false) =>
    decideAtBound(failed(delivered, true).error, { retries, mayHaveArrived });
  assert.equal(
    [next('no', 0, false), next('no', 2, 'here'), next('unknown', 2, false)],
    Array(3).fill('retryHere'),
  );
  assert.equal([next('unknown', 1, 'here'), next('no', 3, 'here')], ['move', 'move']);
  assert.equal([next('no', 3, false), next('unknown', 1, 'earlier')], ['giveUp', 'giveUp']);
  const answer = backendUnavailable('x', { delivered: 'no', backendStatus: 404 });
  assert.is(decideAtBound(answer, { retries: 0, mayHaveArrived: 'here' }), 'giveUp');
});

test('one more begins beside what is silent if it does no harm, a try is left, and the budget has room', () => {
  const found = [true, false].map((isRepeatable) =>
    [0, 1].map((left) => [true, false].map((isAffordable) => mayHedge({ isRepeatable }, left, isAffordable))),
  );
  const never = [false, false];
  assert.equal(found, [
    [never, [true, false]],
    [never, never],
  ]);
});

test.run();
