import * as assert from 'uvu/assert';
import { random } from '../../src/balancing/random.ts';
import { suite } from '../helpers/suite.ts';
import { candidates, picks, seeded } from './candidates.ts';

const test = suite('random');

test('takes the candidate in whose share of [0, 1) the number falls', () => {
  const numbers = [0, 0.249, 0.25, 0.5, 0.999_999];
  const from = candidates('a', 'b', 'c', 'd');
  const chosen = numbers.map((number) => random({ random: () => number })(from).id);
  assert.equal(chosen, ['a', 'a', 'b', 'c', 'd']);
});

test('draws the same again from the same numbers', () => {
  const from = candidates('a', 'b', 'c');
  const once = picks(random({ random: seeded(3) }), from, 50);
  assert.equal(picks(random({ random: seeded(3) }), from, 50), once);
});

test.run();
