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

test('draws with a probability proportional to the score squared', () => {
  const { a, b } = drawn([candidate('a'), candidate('b', { successRate: 0.5 })]);
  isAbout(a, 0.8);
  isAbout(b, 0.2);
});

test('prefers the fast one', () => {
  const { a, b } = drawn([candidate('a', { latencyMs: 15 }), candidate('b', { latencyMs: 55 })]);
  isAbout(a, 9 / 10);
  isAbout(b, 1 / 10);
});

test('divides evenly among equals, whatever their weights and loads are', () => {
  const { a, b } = drawn([candidate('a', { weight: 100 }), candidate('b', { inFlight: 200 })]);
  isAbout(a, 0.5);
  isAbout(b, 0.5);
});

test('gives the worst one a twentieth of the best one, so that a recovery is noticed', () => {
  const { a, b } = drawn([candidate('a'), candidate('b', { successRate: 0 })]);
  isAbout(a, 20 / 21);
  isAbout(b, 1 / 21);
});

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

test('follows the averages as they are at each pick', () => {
  const strategy = healthBased({ random: seeded(1) });
  const from = candidates('a', 'b');
  from[0].successRate = 0;
  const before = counted(picks(strategy, from, 2_000));
  from[0].successRate = 1;
  const after = counted(picks(strategy, from, 2_000));
  assert.ok((before.a ?? 0) < 200 && (after.a ?? 0) > 900);
});

test('takes the last one when the number is as near to 1 as it gets', () => {
  const strategy = healthBased({ random: () => 1 - Number.EPSILON / 2 });
  assert.is(strategy(candidates('a', 'b', 'c')).id, 'c');
});

test.run();
