// What each strategy picks, and the score that health_based uses. What holds for all of them is in every-strategy.spec.ts.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { bestLatencyMs, healthScore } from '../../src/balancing/health-score.ts';
import { STRATEGIES } from '../../src/balancing/strategies.ts';
import type { Candidate, Strategy } from '../../src/balancing/strategy-types.ts';
import { suite } from '../helpers/suite.ts';
import {
  type Candidates,
  candidate,
  candidates,
  choose,
  counted,
  inOrder,
  options,
  picks,
  seeded,
  type TestCandidate,
  weighted,
} from './candidates.ts';

const {
  round_robin: { create: roundRobin },
  least_connections: { create: leastConnections },
  weighted_round_robin: { create: weightedRoundRobin },
  health_based: { create: healthBased },
  random: { create: random },
} = STRATEGIES;
const test = suite('strategies');
/** Counts of 20 000 draws. */
const drawn = (from: Candidates) => counted(picks(healthBased(options({ random: seeded(1) })), from, 20_000));
/** Asserts a share of 20 000 within one percentage point. */
function assertShare(count: number | undefined, share: number): void {
  const expected = 20_000 * share;
  assert.ok(Math.abs((count ?? 0) - expected) < 200, `${count} instead of about ${expected} of 20 000`);
}
const measured = (successRate: number, latencyMs?: number) => ({ successRate, latencyMs });

test('random: picks the candidate whose share of [0, 1) contains the number', () => {
  const numbers = [0, 0.249, 0.25, 0.5, 0.999_999];
  const from = candidates('a', 'b', 'c', 'd');
  const chosen = numbers.map((number) => choose(random(options({ random: () => number })), from).id);
  assert.equal(chosen, ['a', 'a', 'b', 'c', 'd']);
});

test('least_connections picks the least loaded in turn, round_robin all whatever their load', () => {
  const from = [candidate('a', { activeCalls: 2 }), ...candidates('b', 'c')] as const;
  assert.equal(picks(leastConnections(options()), from, 4), ['b', 'c', 'b', 'c']);
  assert.equal(picks(roundRobin(options()), from, 4), ['a', 'b', 'c', 'a']);
});

test('least_connections: of equal loads, one of this node comes first', () => {
  const elsewhere = candidate('a', { isElsewhere: true });
  const from = [elsewhere, candidate('b'), candidate('c')] as const;
  assert.equal(picks(leastConnections(options()), from, 3), ['b', 'c', 'b']);
  const busy = [elsewhere, candidate('b', { activeCalls: 1 })] as const;
  assert.equal(picks(leastConnections(options()), busy, 2), ['a', 'a']);
  assert.equal(picks(roundRobin(options()), from, 3), ['a', 'b', 'c']);
});

test('least_connections: calls of other nodes at their instance count', () => {
  const used = candidate('a', { isElsewhere: true, otherCalls: 2 });
  const from = [used, candidate('b', { activeCalls: 1 }), candidate('c', { activeCalls: 3 })] as const;
  assert.equal(picks(leastConnections(options()), from, 2), ['b', 'b']);
  assert.equal(picks(leastConnections(options()), [used, candidate('c', { activeCalls: 3 })], 1), ['a']);
});

test('least_connections: uses an idle pool evenly when calls come one after another', () => {
  assert.equal(counted(picks(leastConnections(options()), candidates('a', 'b', 'c', 'd'), 400)), {
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
  assertShare(a, 0.8);
  assertShare(b, 0.2);
});

test('health_based: picks the last candidate for the largest number below 1', () => {
  const strategy = healthBased(options({ random: () => 1 - Number.EPSILON / 2 }));
  assert.is(choose(strategy, candidates('a', 'b', 'c')).id, 'c');
});

test('weighted_round_robin: keeps each constant candidate within two calls of its share', () => {
  const weights = fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 2, maxLength: 20 });
  fc.assert(
    fc.property(weights, fc.integer(), (given, seed) => {
      const [first = 1, ...others] = given;
      const [always, ...visitors] = weighted(first, ...others);
      const random = seeded(seed);
      const strategy = weightedRoundRobin(options());
      let due = 0;
      let got = 0;
      for (let pick = 0; pick < 500; pick += 1) {
        const present: Candidates = [always, ...visitors.filter(() => random() < 0.5)];
        due += always.weight / present.reduce((total, { weight }) => total + weight, 0);
        got += choose(strategy, present) === always ? 1 : 0;
        assert.ok(Math.abs(due - got) < 2, `due ${due}, got ${got}`);
      }
    }),
    { seed: 7, numRuns: 200 },
  );
});

test('weighted_round_robin: forgets the credits of all when very many candidates are absent', () => {
  const strategy = weightedRoundRobin(options());
  // While b is remembered it is owed a call and goes first; once it is forgotten it starts even with a.
  const order = () => picks(strategy, candidates('a', 'b'), 2).join('');
  choose(strategy, candidates('a', 'b'));
  visit(strategy, 900);
  assert.is(order(), 'ba');
  visit(strategy, 1_200);
  assert.is(order(), 'ab');
});

test('round_robin: gives 1,000 candidates equal numbers of calls while others come and go', () => {
  const strategy = roundRobin<TestCandidate>(options());
  const stay = many(1_000);
  const others = [candidate('0005'), candidate('5005'), candidate('9995')];
  const chosen: string[] = [];
  for (let change = 0; chosen.length < 5_000; change += 1) {
    const present = inOrder([...stay, ...others.slice(change % 4)]);
    chosen.push(...picks(strategy, present, 250).filter((id) => Number(id) % 10 === 0));
  }
  assert.equal(spread(chosen.slice(0, 5_000)), [1_000, 5, 5]);
});

test('least_connections: spreads bursts over 1,000 candidates evenly, whatever ends in between', () => {
  const strategy = leastConnections<TestCandidate>(options());
  const all = many(1_000);
  const random = seeded(3);
  const begin = (times: number) => {
    for (let call = 0; call < times; call += 1) choose(strategy, all).activeCalls += 1;
  };
  const loads = () => all.map(({ activeCalls }) => activeCalls);
  begin(3_000);
  assert.equal([Math.min(...loads()), Math.max(...loads())], [3, 3]);
  for (let call = 0; call < 10_000; call += 1) {
    const ending = all[Math.floor(random() * 1_000)];
    if (ending === undefined || ending.activeCalls === 0) continue;
    ending.activeCalls -= 1;
    begin(1);
  }
  assert.ok(Math.max(...loads()) <= 4, `${Math.max(...loads())} in flight, of 3 on average`);
});

test('weighted_round_robin: gives each of 1,000 candidates exactly its weight, and changed weights soon', () => {
  const strategy = weightedRoundRobin<TestCandidate>(options());
  const all = many(1_000);
  for (const [index, each] of all.entries()) each.weight = 1 + (index % 5);
  const calls = () => picks(strategy, all, 3_000);
  const isByWeight = (ids: readonly string[]) => {
    const counts = new Map(Object.entries(counted(ids)));
    return all.every(({ id, weight }) => counts.get(id) === weight);
  };
  assert.ok(isByWeight(calls()));
  for (const each of all) each.weight = 6 - each.weight;
  calls();
  assert.ok(isByWeight(calls()));
});

test('health_based: prefers the fast ones of 1,000 candidates nearly as it does among few', () => {
  const all = many(1_000);
  for (const [index, each] of all.entries()) each.latencyMs = index % 2 === 0 ? 5 : 15;
  const ids = picks(healthBased(options({ random: seeded(1) })), all, 20_000);
  assertShare(ids.filter((id) => Number(id) % 20 === 0).length, 0.79);
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

/** Idle candidates with the ids 0000, 0010, 0020 and so on. */
function many(count: number): Candidates {
  const ids = Array.from({ length: count - 1 }, (_, index) => String(10 * (index + 1)).padStart(4, '0'));
  return candidates('0000', ...ids);
}

/** How many ids there are, and how often the rarest and the most frequent one occur. */
function spread(ids: readonly string[]): number[] {
  const counts = Object.values(counted(ids));
  return [counts.length, Math.min(...counts), Math.max(...counts)];
}

/** Picks this many times, each time from a new candidate. */
function visit(strategy: Strategy<Candidate>, times: number): void {
  for (let visitor = 0; visitor < times; visitor += 1) choose(strategy, [candidate(`visitor ${visitor}`)]);
}
