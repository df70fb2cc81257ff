import * as assert from 'uvu/assert';
import { leastConnections } from '../../src/balancing/least-connections.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidates, counted, picks } from './candidates.ts';

const test = suite('least connections');

/** Picks and counts the pick at once, as an instance does when it is sent a request. */
function send(times: number, from: Candidates, strategy = leastConnections()): string[] {
  return Array.from({ length: times }, () => {
    const chosen = strategy(from);
    chosen.inFlight += 1;
    return chosen.id;
  });
}

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

test.run();
