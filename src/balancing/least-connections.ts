// Least connections: the candidate with the fewest exchanges. The count is right only if the send that counts follows the pick
// without an `await`.

import type { Candidate, StrategyFactory } from './strategy.ts';
import { comesSooner } from './turn.ts';

/**
 * Chooses the lowest `inFlight`; candidates with equal numbers take turns, so that an idle pool is used evenly. Weights are
 * ignored. Remembers one id. Source: ADR 7.
 */
export const leastConnections: StrategyFactory = () => {
  let lastId = '';
  return (candidates) => {
    let [chosen] = candidates;
    for (const candidate of candidates) {
      if (isBetter(candidate, chosen, lastId)) chosen = candidate;
    }
    lastId = chosen.id;
    return chosen;
  };
};

function isBetter(candidate: Candidate, chosen: Candidate, lastId: string): boolean {
  const difference = candidate.inFlight - chosen.inFlight;
  return difference === 0 ? comesSooner(candidate.id, chosen.id, lastId) : difference < 0;
}
