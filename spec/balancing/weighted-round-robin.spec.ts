import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { Strategy } from '../../src/balancing/strategy.ts';
import { weightedRoundRobin } from '../../src/balancing/weighted-round-robin.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidate, candidates, counted, picks, seeded, weighted } from './candidates.ts';

const test = suite('weighted round robin');

test('gives 8:1:1 as 800, 100 and 100 of 1 000 picks', () => {
  assert.equal(counted(picks(weightedRoundRobin(), weighted(8, 1, 1), 1_000)), { a: 800, b: 100, c: 100 });
});

test('is even within one call when the heavy one goes down in the middle', () => {
  for (let before = 0; before < 1_002; before += 1) {
    const strategy = weightedRoundRobin();
    const all = weighted(1_000, 1, 1);
    picks(strategy, all, before);
    const { b = 0, c = 0 } = counted(picks(strategy, list(all.slice(1)), 20));
    assert.ok(Math.abs(b - c) <= 2, `after ${before} picks: ${b} and ${c}`);
  }
});

test('keeps everyone who is always there within two calls of its share, whoever comes and goes', () => {
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

test('forgets those that left when it would have to remember very many', () => {
  const strategy = weightedRoundRobin();
  // While b is remembered it is owed a call and goes first; once it is forgotten it starts even with a.
  const order = () => picks(strategy, candidates('a', 'b'), 2).join('');
  strategy(candidates('a', 'b'));
  visit(strategy, 900);
  assert.is(order(), 'ba');
  visit(strategy, 1_200);
  assert.is(order(), 'ab');
});

test('remembers those that are there while it forgets the others', () => {
  for (let visits = 990; visits < 1_010; visits += 1) {
    const strategy = weightedRoundRobin();
    visit(strategy, visits);
    assert.equal(picks(strategy, candidates('a', 'b'), 4), ['a', 'b', 'a', 'b'], `after ${visits} visitors`);
  }
});

/** Picks once from each of so many candidates that are there only once. */
function visit(strategy: Strategy, times: number): void {
  for (let visitor = 0; visitor < times; visitor += 1) strategy([candidate(`visitor ${visitor}`)]);
}

function list(some: Candidates[number][]): Candidates {
  const [first, ...others] = some;
  if (first === undefined) throw new Error('the list of candidates is empty');
  return [first, ...others];
}

test.run();
