// The strategy `weighted_round_robin`: credits that candidates earn and pay. Source: ADR 7.

import type { Candidate, Strategy } from './strategy-types.ts';

/** Most absent candidates (full, down, gone) whose credits are remembered; above it all credits are forgotten. */
const MAX_AWAY = 1_000;
/** Credits that differ by less than this, a rounding error, are equal: the first in the list comes first. */
const ROUNDING = 1e-9;

/**
 * Smooth weighted round robin, keyed by id. At every pick each candidate earns its share of one call; the candidate with the
 * highest credit gets the call and pays for it. Over as many calls as the sum of the weights, each candidate gets exactly its
 * weight: 3:1 over 8 picks gives 6:2.
 *
 * Credit is counted in calls, not in weights as in the common form of the algorithm. The order is the same while the candidates
 * stay; but when a heavy one leaves, the light ones have about one call of credit at most, not the whole weight, which would be
 * spent in one long run. Absent candidates neither earn nor pay.
 *
 * A candidate is asked for its weight, and whether it may take calls, when it is to be chosen, and one more at
 * each pick in turn: reading the numbers of 1,000 instances would take longer than the rest of the pick.
 */
export function weightedRoundRobin<C extends Candidate>(): Strategy<C> {
  const remembered = new Map<string, number>();
  let known: readonly C[] = [];
  let credits = new Float64Array();
  let weights = new Float64Array(); // 0: may not take calls
  let total = 0;
  let turn = 0;
  const read = (candidates: readonly C[]): void => {
    for (const [index, { id }] of known.entries()) remembered.set(id, credits[index] ?? 0);
    if (remembered.size > candidates.length + MAX_AWAY) remembered.clear();
    known = candidates;
    credits = Float64Array.from(candidates, ({ id }) => remembered.get(id) ?? 0);
    weights = Float64Array.from(candidates, ({ weight }) => weight);
    total = weights.reduce((all, weight) => all + weight, 0);
    turn = 0;
  };
  return (candidates, mayTake) => {
    if (candidates !== known) read(candidates);
    const ask = (index: number): boolean => {
      const candidate = candidates[index];
      if (candidate === undefined) return false;
      const weight = mayTake(candidate) ? candidate.weight : 0;
      total += weight - (weights[index] ?? 0);
      weights[index] = weight;
      return weight > 0;
    };
    turn = (turn + 1) % candidates.length;
    ask(turn);
    let index = highestCredit(credits, weights, total);
    if (!ask(index)) {
      // Also those that had no room when they were asked.
      for (const other of candidates.keys()) ask(other);
      index = highestCredit(credits, weights, total);
    }
    if (index < 0) return undefined;
    earn(credits, weights, total);
    credits[index] = (credits[index] ?? 0) - 1;
    return candidates[index];
  };
}

/** The index of the highest credit after this pick, among candidates with a weight; -1 without one. */
function highestCredit(credits: Float64Array, weights: Float64Array, total: number): number {
  let chosen = -1;
  let highest = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < weights.length; index += 1) {
    const weight = weights[index] ?? 0;
    const credit = (credits[index] ?? 0) + weight / total;
    if (weight === 0 || credit <= highest + ROUNDING) continue;
    chosen = index;
    highest = credit;
  }
  return chosen;
}

function earn(credits: Float64Array, weights: Float64Array, total: number): void {
  for (let index = 0; index < weights.length; index += 1)
    credits[index] = (credits[index] ?? 0) + (weights[index] ?? 0) / total;
}
