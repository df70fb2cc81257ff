// How calls of a template are spread and bounded, as the gateway works with it: complete, in milliseconds. It loads no
// schema library, because the command line reads these defaults before anything else.

export const STRATEGY_NAMES = [
  'round_robin',
  'least_connections',
  'weighted_round_robin',
  'health_based',
  'random',
] as const;
export type StrategyName = (typeof STRATEGY_NAMES)[number];

export interface BalancerPolicy {
  readonly strategy: StrategyName;
  readonly healthIntervalMs: number;
  readonly probeTimeoutMs: number;
  readonly maxRetries: number;
  readonly callTimeoutMs: number;
}

/** Source: spec "Configuration", decisions "Units". */
export const DEFAULT_POLICY: BalancerPolicy = {
  strategy: 'round_robin',
  healthIntervalMs: 30_000,
  probeTimeoutMs: 10_000,
  maxRetries: 3,
  callTimeoutMs: 30_000,
};

/** The strategy meant by a written name; `weighted` is the spec's short form. */
export function strategyName(written: StrategyName | 'weighted'): StrategyName {
  return written === 'weighted' ? 'weighted_round_robin' : written;
}
