import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { bestLatencyMs, ewma, healthScore } from '../../src/balancing/health-score.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('health score');

const measured = (successRate: number, latencyMs?: number) => ({ successRate, latencyMs });

test('is 100 for the fastest one that is always answered', () => {
  assert.is(healthScore(measured(1, 40), 40), 100);
});

test('falls in proportion to the success rate', () => {
  assert.is(healthScore(measured(0.5, 40), 40), 50);
});

test('falls with the latency against the best, both with 5 ms added', () => {
  assert.is(healthScore(measured(1, 195), 45), 25);
});

test('is 0 for one that is never answered, however fast it is', () => {
  assert.is(healthScore(measured(0, 0), 0), 0);
});

test('does not punish an unknown latency', () => {
  assert.is(healthScore(measured(1), 10), 100);
  assert.is(healthScore(measured(1, 10), undefined), 100);
});

test('takes a latency of 0 as an ordinary fast one', () => {
  assert.is(healthScore(measured(1, 0), 0), 100);
  assert.is(healthScore(measured(1, 5), 0), 50);
});

test('stays at 100 for one that is faster than the best that was measured before', () => {
  assert.is(healthScore(measured(1, 10), 40), 100);
});

test('is from 0 to 100, and no lower for a faster or more reliable one', () => {
  const rate = fc.double({ min: 0, max: 1, noNaN: true });
  const latency = fc.double({ min: 0, max: 600_000, noNaN: true });
  fc.assert(
    fc.property(rate, rate, latency, latency, latency, (one, other, first, second, best) => {
      const better = healthScore(measured(Math.max(one, other), Math.min(first, second)), best);
      const worse = healthScore(measured(Math.min(one, other), Math.max(first, second)), best);
      assert.ok(0 <= worse && worse <= better + 1e-9 && better <= 100);
    }),
    { seed: 7, numRuns: 500 },
  );
});

test('has the lowest latency as the best one', () => {
  assert.is(bestLatencyMs([measured(1, 30), measured(0.95, 20), measured(1)]), 20);
});

test('has no best latency before one was measured', () => {
  assert.is(bestLatencyMs([measured(1), measured(0)]), undefined);
  assert.is(bestLatencyMs([]), undefined);
});

test('does not take the best latency from one that is clearly less reliable', () => {
  assert.is(bestLatencyMs([measured(1, 100), measured(0.5, 1)]), 100);
});

test('has a best latency also when nobody is ever answered', () => {
  assert.is(bestLatencyMs([measured(0, 100), measured(0, 50)]), 50);
});

test('averages: the first sample is the average', () => {
  assert.is(ewma(undefined, 80, 0.5), 80);
});

test('averages: takes alpha of the sample and the rest of what was', () => {
  assert.is(ewma(100, 0, 0.25), 75);
  assert.is(ewma(100, 40, 1), 40);
});

test('averages: takes a fifth of the sample by default', () => {
  assert.is(ewma(100, 50), 90);
});

test('averages: comes near to a constant sample and never passes it', () => {
  let average = 1;
  for (let sample = 0; sample < 100; sample += 1) average = ewma(average, 0);
  assert.ok(average >= 0 && average < 1e-9);
});

test.run();
