// What each strategy picks, and the score that health_based uses. What holds for all of them is in index.spec.ts.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { bestLatencyMs, healthScore } from '../../src/balancing/health-score.ts';
import { STRATEGIES, type Strategy } from '../../src/balancing/strategies.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidate, candidates, counted, picks, seeded, weighted } from './candidates.ts';

const {
  round_robin: { create: roundRobin },
  least_connections: { create: leastConnections },
  weighted_round_robin: { create: weightedRoundRobin },
  health_based: { create: healthBased },
  random: { create: random },
} = STRATEGIES;
const test = suite('strategies');
/** Counts of 20 000 draws. */
const drawn = (from: Candidates) => counted(picks(healthBased({ random: seeded(1) }), from, 20_000));
/** Asserts a share of 20 000 within one percentage point. */
function isAbout(count: number | undefined, share: number): void {
  const expected = 20_000 * share;
  assert.ok(Math.abs((count ?? 0) - expected) < 200, `${count} instead of about ${expected} of 20 000`);
}
const measured = (successRate: number, latencyMs?: number) => ({ successRate, latencyMs });

test('random: picks the candidate whose share of [0, 1) contains the number', () => {
  const numbers = [0, 0.249, 0.25, 0.5, 0.999_999];
  const from = candidates('a', 'b', 'c', 'd');
  const chosen = numbers.map((number) => random({ random: () => number })(from).id);
  assert.equal(chosen, ['a', 'a', 'b', 'c', 'd']);
});

test('least_connections picks the least loaded in turn, round_robin all whatever their load', () => {
  const from = [candidate('a', { inFlight: 2 }), ...candidates('b', 'c')] as const;
  assert.equal(picks(leastConnections(), from, 4), ['b', 'c', 'b', 'c']);
  assert.equal(picks(roundRobin(), from, 4), ['a', 'b', 'c', 'a']);
});

test('least_connections: uses an idle pool evenly when calls come one after another', () => {
  assert.equal(counted(picks(leastConnections(), candidates('a', 'b', 'c', 'd'), 400)), {
    a: 100,
    b: 100,
    c: 100,
    d: 100,
  });
});

test('health_based: does not prefer a failing candidate with a low latency', () => {
  const { a, b } = drawn([
    candidate('a', { latencyMs: 100 }),
    candidate('b', { successRate: 0.5, latencyMs: 1 }),
  ]);
  isAbout(a, 0.8);
  isAbout(b, 0.2);
});

test('health_based: picks the last candidate for the largest number below 1', () => {
  const strategy = healthBased({ random: () => 1 - Number.EPSILON / 2 });
  assert.is(strategy(candidates('a', 'b', 'c')).id, 'c');
});

test('weighted_round_robin: keeps each constant candidate within two calls of its share', () => {
  const weights = fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 2, maxLength: 20 });
  fc.assert(
    fc.property(weights, fc.integer(), (given, seed) => {
      const [first = 1, ...others] = given;
      const [always, ...visitors] = weighted(first, ...others);
      const random = seeded(seed);
      const strategy = weightedRoundRobin();
      let due = 0;
      let got = 0;
      for (let pick = 0; pick < 500; pick += 1) {
        const present: Candidates = [always, ...visitors.filter(() => random() < 0.5)];
        due += always.weight / present.reduce((total, { weight }) => total + weight, 0);
        got += strategy(present) === always ? 1 : 0;
        assert.ok(Math.abs(due - got) < 2, `due ${due}, got ${got}`);
      }
    }),
    { seed: 7, numRuns: 200 },
  );
});

test('weighted_round_robin: forgets the credits of all when very many candidates are absent', () => {
  const strategy = weightedRoundRobin();
  // While b is remembered it is owed a call and goes first; once it is forgotten it starts even with a.
  const order = () => picks(strategy, candidates('a', 'b'), 2).join('');
  strategy(candidates('a', 'b'));
  visit(strategy, 900);
  assert.is(order(), 'ba');
  visit(strategy, 1_200);
  assert.is(order(), 'ab');
});

test('the score falls with the latency against the best, both with 5 ms added', () => {
  assert.is(healthScore(measured(1, 195), 45), 25);
});

test('an unknown latency does not lower the score', () => {
  assert.is(healthScore(measured(1), 10), 100);
  assert.is(healthScore(measured(1, 10), undefined), 100);
});

test('the score is from 0 to 100, and no lower for a faster or more reliable candidate', () => {
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

test('there is a best latency even if no candidate ever answers', () => {
  assert.is(bestLatencyMs([measured(0, 100), measured(0, 50)]), 50);
});

test.run();

/** Picks this many times, each time from a new candidate. */
function visit(strategy: Strategy, times: number): void {
  for (let visitor = 0; visitor < times; visitor += 1) strategy([candidate(`visitor ${visitor}`)]);
}
