// Round robin: every candidate in turn, one call each.
// What "next" means while candidates come and go is in turn.ts.

import type { StrategyFactory } from './strategy.ts';
import { comesSooner } from './turn.ts';

/**
 * Visits the candidates in the order of their ids. Over stable candidates no two counts ever differ by more than
 * one; weights and load are ignored. Remembers one id. Source: ADR 7.
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
