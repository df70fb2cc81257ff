// Round robin: every candidate in turn, one call each. turn.ts defines the order while candidates come and go.

import type { StrategyFactory } from './strategy.ts';
import { comesSooner } from './turn.ts';

/**
 * Chooses the candidates in the order of their ids. While they stay the same, no two counts differ by more than one. Weights and
 * load are ignored. Remembers one id. Source: ADR 7.
 */
export const roundRobin: StrategyFactory = () => {
  let lastId = '';
  return (candidates) => {
    let [chosen] = candidates;
    for (const candidate of candidates) {
      if (comesSooner(candidate.id, chosen.id, lastId)) chosen = candidate;
    }
    lastId = chosen.id;
    return chosen;
  };
};
