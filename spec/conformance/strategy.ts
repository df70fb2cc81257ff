// The conformance tests for a strategy, run for each row of the table in src/balancing/strategies.ts.
// The order itself is in the spec of each strategy.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { StrategyRow } from '../../src/balancing/strategy-types.ts';
import {
  type Candidates,
  candidate,
  candidates,
  choose,
  inOrder,
  options,
  picks,
  seeded,
  type TestCandidate,
} from '../balancing/candidates.ts';
import { suite } from '../helpers/suite.ts';

/** Declares and runs the suite for one strategy. */
export function strategyConformance(name: string, create: StrategyRow['create']): void {
  const test = suite(`strategy ${name}`);
  const fresh = (seed = 1) => create<TestCandidate>(options({ random: seeded(seed) }));

  test('picks the only candidate there is, every time', () => {
    assert.equal(picks(fresh(), candidates('a'), 5), ['a', 'a', 'a', 'a', 'a']);
  });

  test('picks one of 1 to 50 candidates, whatever their weights, loads and averages are', () => {
    fc.assert(
      fc.property(arbitraryCandidates, fc.integer(), (from, seed) => {
        const strategy = fresh(seed);
        for (let pick = 0; pick < 100; pick += 1) assert.ok(from.includes(choose(strategy, from)));
      }),
      { seed: 7, numRuns: 200 },
    );
  });

  test('picks only from the candidates of this pick while they vanish and return', () => {
    fc.assert(
      fc.property(arbitraryCandidates, fc.integer(), (all, seed) => {
        const strategy = fresh(seed);
        const random = seeded(seed);
        for (let pick = 0; pick < 100; pick += 1) {
          const present = some(all, random);
          assert.ok(present.includes(choose(strategy, present)));
        }
      }),
      { seed: 7, numRuns: 200 },
    );
  });

  test('picks only candidates that may take the call, and none when there is none', () => {
    fc.assert(
      fc.property(fc.oneof(arbitraryCandidates, arbitraryMany), fc.integer(), (from, seed) => {
        const strategy = fresh(seed);
        const random = seeded(seed);
        for (const share of [0, 0.001, 0.1, 0.9]) {
          const able = new Set(from.filter(() => random() < share));
          for (let pick = 0; pick < 10; pick += 1) {
            const chosen = strategy(from, (candidate) => able.has(candidate), {});
            assert.is(chosen !== undefined && able.has(chosen), able.size > 0);
          }
        }
      }),
      { seed: 7, numRuns: 20 },
    );
  });

  test('picks each of 1,000 equal and idle candidates, none of them much more often', () => {
    const all = manyIdle();
    const counts = new Map<string, number>();
    for (const id of picks(fresh(), all, 10_000)) counts.set(id, (counts.get(id) ?? 0) + 1);
    assert.is(counts.size, 1_000);
    assert.ok(Math.max(...counts.values()) <= 30, 'more than three times the mean');
  });

  test('asks about few of 1,000 candidates that may take the call', () => {
    const all = manyIdle();
    const strategy = fresh();
    let asked = 0;
    for (let pick = 0; pick < 100; pick += 1)
      choose(strategy, all, () => {
        asked += 1;
        return true;
      });
    assert.ok(asked <= 100 * 64, `${asked} questions for 100 picks`);
  });

  test('returns the candidate of this pick, not an earlier one with the same id', () => {
    const strategy = fresh();
    for (let pick = 0; pick < 10; pick += 1) {
      const renewed = candidates('a', 'b');
      assert.ok(renewed.includes(choose(strategy, renewed)));
    }
  });

  test('leaves the candidates as they are', () => {
    const frozen: Candidates = [
      Object.freeze(candidate('a', { weight: 2 })),
      Object.freeze(candidate('b', { latencyMs: 20 })),
    ];
    Object.freeze(frozen);
    assert.not.throws(() => picks(fresh(), frozen, 20));
  });

  test('does not starve a candidate that is always present while others change', () => {
    fc.assert(
      fc.property(arbitraryIdle, fc.nat(), fc.integer(), (all, place, seed) => {
        const strategy = fresh(seed);
        const random = seeded(seed);
        const always = all[place % all.length] ?? all[0];
        const present = () => asCandidates(all.filter((one) => one === always || random() < 0.5));
        const chosen = Array.from({ length: 1_000 }, () => choose(strategy, present()));
        assert.ok(chosen.includes(always));
      }),
      { seed: 7, numRuns: 100 },
    );
  });

  test('shares no memory with a strategy of another pool, even over the same ids', () => {
    const mine = candidates('a', 'b', 'c');
    const theirs: Candidates = [candidate('b', { weight: 9 }), candidate('a', { weight: 5 })];
    const alone = picks(fresh(), mine, 60);

    const strategy = fresh();
    const neighbour = fresh();
    const besideOther = Array.from({ length: 60 }, () => {
      choose(neighbour, theirs);
      return choose(strategy, mine).id;
    });

    assert.equal(besideOther, alone);
  });

  test.run();
}

const arbitraryIds = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 50,
});

/** 1 to 50 candidates in any condition. */
const arbitraryCandidates: fc.Arbitrary<Candidates> = arbitraryIds.chain((ids) =>
  fc
    .tuple(
      ...ids.map((id) =>
        fc.record({
          id: fc.constant(id),
          weight: fc.integer({ min: 1, max: 1_000 }),
          activeCalls: fc.nat(255),
          capacity: fc.constant<number>(256),
          successRate: fc.double({ min: 0, max: 1, noNaN: true }),
          latencyMs: fc.option(fc.double({ min: 0, max: 60_000, noNaN: true }), { nil: undefined }),
        }),
      ),
    )
    .map((list) => inOrder(asCandidates(list))),
);

/** 1,000 candidates in any load. */
const arbitraryMany = fc.nat().map((seed) => {
  const random = seeded(seed);
  return asCandidates(manyIdle().map((each) => ({ ...each, activeCalls: Math.floor(random() * 3) })));
});

/** 1,000 equal candidates. */
function manyIdle(): Candidates {
  const ids = Array.from({ length: 1_000 }, (_, index) => String(index).padStart(3, '0'));
  return asCandidates(ids.map((id) => candidate(id)));
}

/** 1 to 10 candidates that differ in weight only, by a factor of 10 at most. */
const arbitraryIdle = fc
  .array(fc.integer({ min: 1, max: 10 }), { minLength: 1, maxLength: 10 })
  .map((weights) => asCandidates(weights.map((weight, index) => candidate(`s${index}`, { weight }))));

function asCandidates<C>(list: readonly C[]): readonly [C, ...C[]] {
  const [first, ...others] = list;
  if (first === undefined) throw new Error('the list of candidates is empty');
  return [first, ...others];
}

/** Each one with a chance of a half; at least one. */
function some<C>(all: readonly [C, ...C[]], random: () => number): readonly [C, ...C[]] {
  const staying = all.filter(() => random() < 0.5);
  return staying.length === 0 ? all : asCandidates(staying);
}
