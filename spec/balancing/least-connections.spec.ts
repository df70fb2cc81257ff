import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { leastConnections } from '../../src/balancing/least-connections.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidate, candidates, counted, picks, seeded } from './candidates.ts';

const test = suite('least connections');

/** Picks and counts the pick at once, as an instance does when it is sent a request. */
function send(times: number, from: Candidates, strategy = leastConnections()): string[] {
  return Array.from({ length: times }, () => {
    const chosen = strategy(from);
    chosen.inFlight += 1;
    return chosen.id;
  });
}

test('takes the candidate with the fewest exchanges in flight', () => {
  const from: Candidates = [
    candidate('a', { inFlight: 3 }),
    candidate('b', { inFlight: 1, weight: 9 }),
    candidate('c', { inFlight: 2 }),
  ];
  assert.equal(picks(leastConnections(), from, 3), ['b', 'b', 'b']);
});

test('takes turns among those that carry equally few', () => {
  const from: Candidates = [candidate('a'), candidate('busy', { inFlight: 1 }), candidate('c')];
  assert.equal(picks(leastConnections(), from, 5), ['a', 'c', 'a', 'c', 'a']);
});

test('uses an idle pool evenly when calls come one after another', () => {
  assert.equal(counted(picks(leastConnections(), candidates('a', 'b', 'c', 'd'), 400)), {
    a: 100,
    b: 100,
    c: 100,
    d: 100,
  });
});

test('spreads a burst of 2 000 over four as 500 each', () => {
  assert.equal(counted(send(2_000, candidates('a', 'b', 'c', 'd'))), { a: 500, b: 500, c: 500, d: 500 });
});

test('fills up the ones that carry less before it goes on with all', () => {
  const from: Candidates = [candidate('a', { inFlight: 4 }), candidate('b'), candidate('c', { inFlight: 2 })];
  assert.equal(counted(send(6, from)), { b: 4, c: 2 });
});

test('never lets two loads drift further apart than one while calls come and finish', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), fc.integer(), (size, seed) => {
      const random = seeded(seed);
      const strategy = leastConnections();
      const [first = '', ...others] = Array.from({ length: size }, (_, index) => `s${index}`);
      const from = candidates(first, ...others);
      for (let step = 0; step < 300; step += 1) {
        send(1, from, strategy);
        const highest = Math.max(...from.map(({ inFlight }) => inFlight));
        const busiest = from.find(({ inFlight }) => inFlight === highest);
        if (busiest && random() < 0.5) busiest.inFlight -= 1;
        const loads = from.map(({ inFlight }) => inFlight);
        assert.ok(Math.max(...loads) - Math.min(...loads) <= 1);
      }
    }),
    { seed: 7, numRuns: 100 },
  );
});

test.run();
