import * as assert from 'uvu/assert';
import { healthBased } from '../../src/balancing/health-based.ts';
import { suite } from '../helpers/suite.ts';
import { type Candidates, candidate, candidates, counted, picks, seeded } from './candidates.ts';

const test = suite('health based');

/** Counts of 20 000 draws. */
const drawn = (from: Candidates) => counted(picks(healthBased({ random: seeded(1) }), from, 20_000));

/** Asserts a share of 20 000 within one percentage point. */
function isAbout(count: number | undefined, share: number): void {
  const expected = 20_000 * share;
  assert.ok(Math.abs((count ?? 0) - expected) < 200, `${count} instead of about ${expected} of 20 000`);
}

test('gives one that was never called the chance of a good one', () => {
  const { a, b } = drawn([candidate('a', { latencyMs: 100 }), candidate('b')]);
  isAbout(a, 0.5);
  isAbout(b, 0.5);
});

test('divides evenly when nobody is ever answered', () => {
  const { a, b } = drawn([candidate('a', { successRate: 0 }), candidate('b', { successRate: 0 })]);
  isAbout(a, 0.5);
  isAbout(b, 0.5);
});

test('does not prefer a broken one that only answers pings quickly', () => {
  const { a, b } = drawn([
    candidate('a', { latencyMs: 100 }),
    candidate('b', { successRate: 0.5, latencyMs: 1 }),
  ]);
  isAbout(a, 0.8);
  isAbout(b, 0.2);
});

test('takes the last one when the number is as near to 1 as it gets', () => {
  const strategy = healthBased({ random: () => 1 - Number.EPSILON / 2 });
  assert.is(strategy(candidates('a', 'b', 'c')).id, 'c');
});

test.run();
