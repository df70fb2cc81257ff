// Health based: the higher the health score of a candidate (health-score.ts), the more calls it gets; every candidate gets some.

import { bestLatencyMs, healthScore } from './health-score.ts';
import type { StrategyFactory } from './strategy.ts';

/** The least probability of a candidate, as a share of the best candidate's. */
const FLOOR = 0.05;

/**
 * Draws with a probability proportional to the score squared: half the score, a quarter of the calls. The least probability is
 * 5 % of the greatest, so that a recovered instance is noticed. When all scores are 0, all probabilities are equal. `random`
 * returns [0, 1). Source: ADR 7.
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
  return chances.length - 1; // a rounding remainder belongs to the last one
}
