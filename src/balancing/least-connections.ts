// Least connections: the candidate that carries the fewest exchanges right now.
// Counting is not done here: it is right only when the send that counts follows the pick without an `await`.

import type { Candidate, StrategyFactory } from './strategy.ts';
import { comesSooner } from './turn.ts';

/**
 * Takes the fewest `inFlight`; several that carry equally few take turns, so an idle pool is used evenly instead of
 * its first member alone. Weights are ignored. Remembers one id. Source: ADR 7.
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
