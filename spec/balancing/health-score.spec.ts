import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { bestLatencyMs, healthScore } from '../../src/balancing/health-score.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('health score');

const measured = (successRate: number, latencyMs?: number) => ({ successRate, latencyMs });

test('falls with the latency against the best, both with 5 ms added', () => {
  assert.is(healthScore(measured(1, 195), 45), 25);
});

test('does not punish an unknown latency', () => {
  assert.is(healthScore(measured(1), 10), 100);
  assert.is(healthScore(measured(1, 10), undefined), 100);
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

test('has a best latency also when nobody is ever answered', () => {
  assert.is(bestLatencyMs([measured(0, 100), measured(0, 50)]), 50);
});

test.run();
