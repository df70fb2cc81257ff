import * as assert from 'uvu/assert';
import { random } from '../../src/balancing/random.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidate, candidates, counted, picks, seeded } from './candidates.ts';

const test = suite('random');

test('takes the candidate in whose share of [0, 1) the number falls', () => {
  const numbers = [0, 0.249, 0.25, 0.5, 0.999_999];
  const from = candidates('a', 'b', 'c', 'd');
  const chosen = numbers.map((number) => random({ random: () => number })(from).id);
  assert.equal(chosen, ['a', 'a', 'b', 'c', 'd']);
});

test('spreads calls evenly, whatever weights, loads and averages are', () => {
  const from: Candidates = [
    candidate('a', { weight: 1_000 }),
    candidate('b', { inFlight: 255 }),
    candidate('c', { successRate: 0 }),
    candidate('d', { latencyMs: 60_000 }),
  ];
  const counts = Object.values(counted(picks(random({ random: seeded(1) }), from, 10_000)));
  assert.is(counts.length, 4);
  for (const count of counts) assert.ok(Math.abs(count - 2_500) < 150, `${count} of 10 000`);
});

test('draws the same again from the same numbers', () => {
  const from = candidates('a', 'b', 'c');
  const once = picks(random({ random: seeded(3) }), from, 50);
  assert.equal(picks(random({ random: seeded(3) }), from, 50), once);
});

test.run();
