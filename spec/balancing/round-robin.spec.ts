import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { roundRobin } from '../../src/balancing/round-robin.ts';
import { suite } from '../helpers/suite.ts';
import { candidates, seeded } from './candidates.ts';

const test = suite('round robin');

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
