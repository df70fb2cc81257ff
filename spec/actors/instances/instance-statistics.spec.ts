// The arithmetic of probes, openings and closings of one instance: what each changes in its numbers, and how long a back-off is.
// When an event applies is the machine's matter (instance.machine.spec.ts and its neighbours).

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import {
  afterClosing,
  afterFailedProbe,
  afterOpening,
  afterPassedProbe,
  backOffMs,
  INITIAL_STATISTICS,
  type InstanceStatistics,
} from '../../../src/actors/instances/instance-statistics.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('vitals');

const vitals = (fields: Partial<InstanceStatistics>): InstanceStatistics => ({
  ...INITIAL_STATISTICS,
  ...fields,
});

test('does not touch what it is given', () => {
  const frozen = Object.freeze(vitals({ failures: 1 }));
  for (const change of [
    () => afterOpening(frozen, 1),
    () => afterPassedProbe(frozen, 1),
    () => afterFailedProbe(frozen, 1),
    () => afterClosing(frozen, 1),
  ]) {
    assert.is.not(change(), frozen);
  }
});

test('counts every session after the first as a restart', () => {
  const first = afterOpening(INITIAL_STATISTICS, 100);
  assert.equal(first, vitals({ checkedAtMs: 100, openedAtMs: 100, sessions: 1 }));
  const second = afterOpening(afterClosing(first, 200), 300);
  assert.equal(second, vitals({ checkedAtMs: 300, openedAtMs: 300, sessions: 2, attempts: 1 }));
});

test('forgets failed probes when a session opens', () => {
  assert.is(afterOpening(vitals({ failures: 2 }), 1).failures, 0);
});

test('counts failed probes in a row', () => {
  const twice = afterFailedProbe(afterFailedProbe(INITIAL_STATISTICS, 10), 20);
  assert.equal(twice, vitals({ failures: 2, recoveries: 2, checkedAtMs: 20 }));
  assert.is(afterPassedProbe(twice, 30).failures, 0);
});

test('counts openings in a row that led to nothing', () => {
  const twice = afterClosing(afterClosing(INITIAL_STATISTICS, 10), 20);
  assert.is(twice.attempts, 2);
});

test('forgives all failures before a session that lived for 60 s', () => {
  const open = vitals({ attempts: 5, openedAtMs: 1_000 });
  assert.is(afterClosing(open, 60_999).attempts, 6);
  assert.is(afterClosing(open, 61_000).attempts, 1);
});

test('forgives once: openings that fail behind a long session count up again', () => {
  const lost = afterClosing(vitals({ openedAtMs: 0 }), 70_000);
  const failedOnce = afterClosing(lost, 71_000);
  const failedTwice = afterClosing(failedOnce, 73_000);
  assert.equal(
    [lost, failedOnce, failedTwice].map(({ attempts }) => attempts),
    [1, 2, 3],
  );
});

test('waits 0.5 s, doubled for every further try, up to the longest wait', () => {
  const waits = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((tries) => backOffMs(tries, 30_000, 0.5));
  assert.equal(waits, [500, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

test('spreads a wait from three to five quarters of it', () => {
  assert.is(backOffMs(1, 30_000, 0), 375);
  assert.is(backOffMs(1, 30_000, 0.999_999), 625);
  assert.is(backOffMs(100, 30_000, 0), 22_500);
});

test('never waits longer than the longest wait', () => {
  assert.equal([backOffMs(100, 30_000, 0.5), backOffMs(100, 30_000, 0.999_999)], [30_000, 30_000]);
});

test('waits at least for the first step, however short the longest wait', () => {
  assert.is(backOffMs(9, 0, 0.5), 500);
});

test('waits between 375 ms and the longest wait, whatever comes', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const property = fc.property(
    fc.nat(),
    fc.integer({ min: 500, max: 3_600_000 }),
    random,
    (tries, most, at) => {
      const waitMs = backOffMs(tries, most, at);
      assert.ok(Number.isInteger(waitMs) && waitMs >= 375 && waitMs <= most);
    },
  );
  fc.assert(property);
});

test.run();
