// The table of strategies. Config, OpenAPI and the command line take the names from domain/policy.ts; the compiler compares both.

import type { StrategyName } from '../domain/policy.ts';
import { healthBased } from './health-based.ts';
import { leastConnections } from './least-connections.ts';
import { random } from './random.ts';
import { roundRobin } from './round-robin.ts';
import type { StrategyFactory } from './strategy.ts';
import { weightedRoundRobin } from './weighted-round-robin.ts';

/** Every strategy by the name it has in settings. */
export const STRATEGIES: Readonly<Record<StrategyName, StrategyFactory>> = {
  round_robin: roundRobin,
  least_connections: leastConnections,
  weighted_round_robin: weightedRoundRobin,
  health_based: healthBased,
  random,
};
