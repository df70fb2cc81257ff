// Weighted round robin: calls in proportion to the weights, spread smoothly. Weights are read at every pick, so that a changed
// weight counts from the next call on.

import type { Candidate, StrategyFactory } from './strategy.ts';

/** Most absent candidates (full, down, gone) that are remembered; above it all of them are forgotten. */
const MOST_AWAY = 1_000;
/** Credits that differ by less than this, a rounding error, are equal: the first in the list comes first. */
const ROUNDING = 1e-9;

/**
 * Smooth weighted round robin, keyed by id. At every pick each candidate earns its share of one call; the candidate with the
 * highest credit gets the call and pays for it. Over as many calls as the sum of the weights, each candidate gets exactly its
 * weight: 3:1 over 8 picks gives 6:2.
 *
 * Credit is counted in calls, not in weights as in the common form of the algorithm. The order is the same while the candidates
 * stay; but when a heavy one leaves, the light ones have about one call of credit at most, not the whole weight, which would be
 * spent in one long run. Absent candidates neither earn nor pay. Source: ADR 7.
 */
export const weightedRoundRobin: StrategyFactory = () => {
  const credits = new Map<string, number>();
  return (candidates) => {
    const weights = totalWeight(candidates);
    let [chosen] = candidates;
    let highest = Number.NEGATIVE_INFINITY;
    for (const candidate of candidates) {
      const credit = (credits.get(candidate.id) ?? 0) + candidate.weight / weights;
      credits.set(candidate.id, credit);
      if (credit > highest + ROUNDING) {
        highest = credit;
        chosen = candidate;
      }
    }
    credits.set(chosen.id, highest - 1);
    if (credits.size > candidates.length + MOST_AWAY) forgetAway(credits, candidates);
    return chosen;
  };
};

function totalWeight(candidates: readonly Candidate[]): number {
  let total = 0;
  for (const candidate of candidates) total += candidate.weight;
  return total;
}

function forgetAway(credits: Map<string, number>, candidates: readonly Candidate[]): void {
  const present = new Set(candidates.map((candidate) => candidate.id));
  for (const id of credits.keys()) {
    if (!present.has(id)) credits.delete(id);
  }
}
