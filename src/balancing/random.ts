// Random: every candidate with the same probability. The only strategy without a memory.

import type { StrategyFactory } from './strategy.ts';

/** Draws uniformly; weights and load are ignored. `random` returns [0, 1). Source: ADR 7. */
export const random: StrategyFactory = ({ random: draw = Math.random } = {}) => {
  return (candidates) => candidates[Math.floor(draw() * candidates.length)] ?? candidates[0];
};
