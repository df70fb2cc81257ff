// Health based: the healthier a candidate, the more calls it gets; every candidate gets some.
// What "healthy" amounts to is in health-score.ts; instances that are down never come here.

import { bestLatencyMs, healthScore } from './health-score.ts';
import type { StrategyFactory } from './strategy.ts';

/** The smallest chance of a candidate, as a share of the best candidate's chance. */
const FLOOR = 0.05;

/**
 * Draws with a probability proportional to the score squared: half the score, a quarter of the calls. The chance of
 * the worst is held at 5 % of the best one's, so that an instance that has recovered is noticed. When all scores are
 * 0, all chances are equal. `random` returns [0, 1). Source: ADR 7.
 */
export const healthBased: StrategyFactory = ({ random = Math.random } = {}) => {
  return (candidates) => {
    const best = bestLatencyMs(candidates);
    const chances = chancesOf(candidates.map((candidate) => healthScore(candidate, best)));
    return candidates[draw(chances, random)] ?? candidates[0];
  };
};

function chancesOf(scores: readonly number[]): number[] {
  const highest = Math.max(...scores);
  if (highest === 0) return scores.map(() => 1);
  const floor = highest ** 2 * FLOOR;
  return scores.map((score) => Math.max(score ** 2, floor));
}

/** An index, drawn with probability proportional to its chance. */
function draw(chances: readonly number[], random: () => number): number {
  let rest = random() * chances.reduce((sum, chance) => sum + chance, 0);
  for (const [index, chance] of chances.entries()) {
    rest -= chance;
    if (rest < 0) return index;
  }
  return chances.length - 1; // what rounding left over belongs to the last one
}
