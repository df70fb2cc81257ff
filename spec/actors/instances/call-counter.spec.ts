// What counts as a call in flight, what fills the capacity, and what calls and probes say about an instance.

import * as assert from 'uvu/assert';
import type { ExchangeEnding } from '../../../src/actors/calls/call-reply.ts';
import { CallCounter } from '../../../src/actors/instances/call-counter.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('call counter');

const ended = (outcome: ExchangeEnding['outcome'], durationMs = 10): ExchangeEnding => ({
  outcome,
  durationMs,
  error: undefined,
});

test('are free while their call waits for its client, and taken again when it goes on', () => {
  const calls = new CallCounter();
  calls.begin('ann');
  calls.begin('ann');
  assert.equal([calls.rest('ann'), calls.carried, calls.working], [true, 2, 1]);
  calls.goOn('ann');
  calls.end('ann', ended('result'));
  assert.equal([calls.carried, calls.working], [1, 1]);
});

test('are kept when too many wait, of one owner or of all', () => {
  const calls = new CallCounter();
  for (let call = 0; call <= LIMITS.parkedCalls; call += 1) calls.begin('ann');
  for (const owner of ['ann', 'bob', 'cyd', 'dan'])
    for (let call = 0; call < LIMITS.parkedCalls / 4; call += 1) assert.ok(calls.rest(owner));
  assert.equal([calls.rest('eve'), calls.working], [false, 1]);
  calls.goOn('ann');
  assert.equal([calls.rest('bob'), calls.rest('ann'), calls.working], [false, true, 1]);
});

test('has places above the bound only for owners below an equal part, while others are above it', () => {
  const calls = new CallCounter();
  const take = (owner: string, count: number) => {
    for (let call = 0; call < count; call += 1) calls.begin(owner);
  };
  for (let owner = 0; owner < LIMITS.inFlightPerInstance; owner += 1) take(`${owner}`, 1);
  assert.is(calls.hasPlaceFor('one more'), false, 'no owner holds more than one place');
  calls.end('0', ended('result'));
  take('1', 1);
  assert.is(calls.hasPlaceFor('0'), true);
  assert.equal([calls.hasPlaceFor('1'), calls.isBelowShare('1')], [false, false]);
  take('0', 1);
  assert.is(calls.working, LIMITS.inFlightPerInstance + 1);
});

test('counts calls up and down, and those that failed or were answered with an error', () => {
  const calls = new CallCounter();
  for (const outcome of ['result', 'error', 'failed', 'cancelled'] as const) {
    calls.begin('ann');
    assert.equal([calls.carried, calls.isIdle], [1, false]);
    calls.end('ann', ended(outcome));
    assert.equal([calls.carried, calls.isIdle], [0, true]);
  }
  assert.equal([calls.requests, calls.errors], [4, 2]);
});

test('learns nothing from a cancelled call', () => {
  const calls = new CallCounter();
  calls.begin('ann');
  calls.end('ann', ended('cancelled', 9_000));
  assert.equal([calls.successRate, calls.latencyMs], [1, undefined]);
});

test('averages the time of answers, error answers included; a failure lowers the success rate', () => {
  const calls = new CallCounter();
  const end = (outcome: ExchangeEnding['outcome'], durationMs: number) => {
    calls.begin('ann');
    calls.end('ann', ended(outcome, durationMs));
    return [calls.successRate, calls.latencyMs];
  };
  assert.equal(end('result', 42), [1, 42]);
  assert.equal(end('failed', 9_000), [0.8, 42]);
  assert.equal(end('error', 32), [0.8400000000000001, 40]);
});

test('takes probes for calls of no client; one without a time says nothing of that', () => {
  const calls = new CallCounter();
  calls.probed(false);
  calls.probed(false);
  assert.equal([calls.successRate.toFixed(2), calls.latencyMs], ['0.64', undefined]);
  calls.probed(true, 10);
  calls.probed(true, 20);
  assert.is(calls.latencyMs, 12);
  assert.equal([calls.requests, calls.isIdle], [0, true]);
});

test.run();
