// The rules of retries and hedges, for all that can fail and all that can be silent. What calls and openings make of them is in
// actors/calls and actors/sessions.

import * as assert from 'uvu/assert';
import {
  type CallHistory,
  type FailedAttempt,
  isRepeatable,
  mayAbandon,
  mayAwaitLink,
  mayHedge,
  nextAfter,
} from '../../../src/domain/calls/retry-rules.ts';
import { backendUnavailable, queueFull } from '../../../src/domain/errors/backend-errors.ts';
import type { Delivered } from '../../../src/domain/errors/errors.ts';
import { toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('retry rules');

const KNOWS_READ = { tools: { isRepeatable: (tool: string) => tool === 'read' } };

/** A call that has not failed before, and that several instances may answer. */
const FIRST: CallHistory = {
  attemptsLeft: 3,
  retriesMade: 0,
  hasReopened: false,
  hasMoved: false,
  bound: undefined,
  progress: undefined,
};

const next = (failure: Omit<FailedAttempt, 'ref' | 'number'>, soFar: Partial<CallHistory> = {}) =>
  nextAfter({ ref: undefined, number: 1, ...failure }, { ...FIRST, ...soFar });

const failed = (delivered: Delivered, isRepeatable: boolean) => ({
  error: backendUnavailable('x', { delivered }),
  isRepeatable,
});

test('what did not arrive is done again, what may have arrived only if that does no harm, an answer never', () => {
  const rows = (['no', 'unknown', 'yes'] as const).map((delivered) =>
    [true, false].map((isRepeatable) => next(failed(delivered, isRepeatable))),
  );
  assert.equal(rows, [
    ['elsewhere', 'elsewhere'],
    ['elsewhere', 'giveUp'],
    ['giveUp', 'giveUp'],
  ]);
  assert.is(next(failed('no', true), { attemptsLeft: 0 }), 'giveUp');
});

test('once the caller has messages of it, the failure is final', () => {
  assert.is(next(failed('no', true), { progress: 'answering' }), 'giveUp');
});

test('an answer about the request is final, also for others under way; after any other failure they continue', () => {
  const after = (status: number, sentIn: FailedAttempt['sentIn'], progress?: CallHistory['progress']) => {
    const error = backendUnavailable('x', { delivered: 'no', refusal: { status, waitMs: undefined } });
    return next({ error, isRepeatable: false, sentIn }, { progress });
  };
  assert.equal([after(422, 'fresh'), after(422, 'fresh', 'others')], ['giveUp', 'giveUp']);
  assert.equal([after(422, undefined), after(503, 'fresh'), after(404, 'fresh')], Array(3).fill('elsewhere'));
  assert.equal([after(503, 'fresh', 'others'), after(422, undefined, 'others')], ['hedge', 'hedge']);
  assert.is(next(failed('yes', false), { progress: 'others' }), 'hedge');
});

test('where its session is bound it is done three times more, and not there once it may have arrived twice', () => {
  const after = (delivered: Delivered, retriesMade: number, mayHaveArrived: 'here' | 'earlier' | false) =>
    next(failed(delivered, true), { retriesMade, attemptsLeft: 0, bound: { mayHaveArrived } });
  assert.equal(
    [after('no', 0, false), after('no', 2, 'here'), after('unknown', 2, false)],
    Array(3).fill('here'),
  );
  assert.equal([after('unknown', 1, 'here'), after('no', 3, 'here')], ['move', 'move']);
  assert.equal([after('no', 3, false), after('unknown', 1, 'earlier')], ['giveUp', 'giveUp']);
  const error = backendUnavailable('x', { delivered: 'no', refusal: { status: 404, waitMs: undefined } });
  assert.is(next({ error, isRepeatable: true }, { bound: { mayHaveArrived: 'here' } }), 'giveUp');
});

test('a call makes its session move only once, after a failure or a silence, and there only if others are unanswered', () => {
  const arrived = { bound: { mayHaveArrived: 'here' } } as const;
  const after = (hasMoved: boolean) => next(failed('unknown', true), { ...arrived, hasMoved });
  assert.equal([after(false), after(true)], ['move', 'giveUp']);
  assert.is(next(failed('no', true), { ...arrived, hasMoved: true }), 'here');
  const silent = [true, false].flatMap((isRepeatable) =>
    [false, true].flatMap((hasMoved) =>
      [true, false].map((isSuspended) => mayAbandon({ isRepeatable }, hasMoved, isSuspended)),
    ),
  );
  assert.equal(silent, [true, ...Array(7).fill(false)]);
});

test('a call waits for the link to another node if it did not arrive there, and a try is left', () => {
  const errors = (['no', 'unknown', 'yes'] as const).map((delivered) => failed(delivered, true).error);
  assert.equal(
    errors.map((error) => mayAwaitLink(error, true, 1)),
    [true, false, false],
  );
  const [lost] = errors;
  assert.ok(lost && !mayAwaitLink(lost, false, 1) && !mayAwaitLink(lost, true, 0));
  const refused = backendUnavailable('x', { delivered: 'no', refusal: { status: 503, waitMs: undefined } });
  assert.equal(
    [refused, queueFull('t')].map((error) => mayAwaitLink(error, true, 1)),
    [false, false],
  );
});

test('a reused conversation that had ended unnoticed is replaced once, and nothing is counted for it', () => {
  const reused = { ...failed('no', false), sentIn: 'reused' } as const;
  const exhausted = { attemptsLeft: 0, retriesMade: 3 };
  assert.is(next(reused, exhausted), 'reopen');
  assert.is(next(reused, { ...exhausted, bound: { mayHaveArrived: 'earlier' } }), 'reopen');
  assert.is(next(reused, { hasReopened: true }), 'elsewhere');
  assert.is(next({ ...reused, sentIn: 'fresh' }), 'elsewhere');
  assert.is(next({ ...reused, ...failed('unknown', true) }), 'elsewhere');
  const error = backendUnavailable('x', { delivered: 'no', refusal: { status: 404, waitMs: undefined } });
  assert.is(next({ ...reused, error }), 'elsewhere');
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

test('a call of an unknown tool, or without a tool name, is not repeatable', () => {
  assert.is(isRepeatable(toolCall('read'), { tools: undefined }), false);
  assert.is(isRepeatable({ method: 'tools/call', params: { name: ['read'] } }, KNOWS_READ), false);
});

test.run();
