import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { roundRobin } from '../../src/balancing/round-robin.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidate, candidates, counted, picks, seeded } from './candidates.ts';

const test = suite('round robin');

test('visits the candidates in turn', () => {
  assert.equal(picks(roundRobin(), candidates('a', 'b', 'c'), 7), ['a', 'b', 'c', 'a', 'b', 'c', 'a']);
});

test('takes no notice of weights, loads and averages', () => {
  const from: Candidates = [
    candidate('a', { weight: 100, inFlight: 200 }),
    candidate('b', { successRate: 0, latencyMs: 60_000 }),
  ];
  assert.equal(picks(roundRobin(), from, 4), ['a', 'b', 'a', 'b']);
});

test('takes no notice of the order in which the candidates are listed', () => {
  const strategy = roundRobin();
  const chosen = [
    strategy(candidates('a', 'b', 'c')),
    strategy(candidates('c', 'b', 'a')),
    strategy(candidates('b', 'a', 'c')),
  ];
  assert.equal(
    chosen.map(({ id }) => id),
    ['a', 'b', 'c'],
  );
});

test('goes on after the last chosen one when that one has left', () => {
  const strategy = roundRobin();
  picks(strategy, candidates('a', 'b', 'c'), 2);
  assert.equal(picks(strategy, candidates('a', 'c'), 3), ['c', 'a', 'c']);
});

test('gives a newcomer its turn within the round', () => {
  const strategy = roundRobin();
  picks(strategy, candidates('a', 'c'), 1);
  assert.equal(picks(strategy, candidates('a', 'b', 'c'), 3), ['b', 'c', 'a']);
});

test('serves a third one while two others are full by turns', () => {
  const strategy = roundRobin();
  const lists = [candidates('a', 'b', 'c'), candidates('b', 'c'), candidates('a', 'c'), candidates('b', 'c')];
  assert.equal(
    lists.map((list) => strategy(list).id),
    ['a', 'b', 'c', 'b'],
  );
});

test('keeps every two counts within one of each other, after any number of picks', () => {
  const ids = fc.uniqueArray(
    fc.string().map((id) => `#${id}`),
    { minLength: 1, maxLength: 50 },
  );
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 500 }), (names, times) => {
      const [first = '', ...others] = names;
      const chosen = counted(picks(roundRobin(), candidates(first, ...others), times));
      const counts = names.map((id) => chosen[id] ?? 0);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1);
    }),
    { seed: 7, numRuns: 200 },
  );
});

test('gives two candidates that are always there strict turns, whoever comes and goes beside them', () => {
  const others = fc.uniqueArray(fc.string({ minLength: 2 }), { maxLength: 20 });
  fc.assert(
    fc.property(others, fc.integer(), (names, seed) => {
      const random = seeded(seed);
      const strategy = roundRobin();
      const chosen: string[] = [];
      for (let pick = 0; pick < 300; pick += 1) {
        const visitors = names.filter(() => random() < 0.5);
        chosen.push(strategy(candidates('K', 'k', ...visitors)).id);
      }
      const constant = chosen.filter((id) => id === 'K' || id === 'k');
      const alternating = constant.map((_, index) => (index % 2 === 0 ? constant[0] : constant[1]));
      assert.equal(constant, alternating);
      assert.is(new Set(constant).size, 2);
    }),
    { seed: 7, numRuns: 200 },
  );
});

test.run();
