// How calls of a template are balanced and bounded: all settings, in milliseconds. It imports no schema library, because the command
// line reads these defaults first.

export const STRATEGY_NAMES = [
  'round_robin',
  'least_connections',
  'weighted_round_robin',
  'health_based',
  'random',
] as const;
export type StrategyName = (typeof STRATEGY_NAMES)[number];

/**
 * Whether MCP sessions share the processes of a template. `auto`: unless the client accepts requests or sets a log level, which
 * cannot be attributed to one client of a shared process; clients that declare extensions share with their like (ADR 104).
 */
export const SESSION_SHARING = ['auto', 'shared', 'isolated'] as const;
export type SessionSharing = (typeof SESSION_SHARING)[number];

/**
 * Whether an MCP session continues with another instance when its own is gone. `auto`: if it only read, and called tools that are
 * read-only or idempotent.
 */
export const SESSION_FAILOVER = ['auto', 'always', 'never'] as const;
export type SessionFailover = (typeof SESSION_FAILOVER)[number];

export interface BalancerPolicy {
  readonly strategy: StrategyName;
  readonly healthIntervalMs: number;
  readonly probeTimeoutMs: number;
  readonly maxRetries: number;
  readonly callTimeoutMs: number;
  /** Longest start of a program, up to its handshake; it is stopped then, and started again. Other backends: LIMITS.handshakeMs. */
  readonly startTimeoutMs: number;
  readonly session: SessionSharing;
  readonly sessionFailover: SessionFailover;
}

/** Longest wait for the first answer to a request, in ms; `tool`: the tool that it calls, if any. */
export function timeoutFor({ callTimeoutMs }: BalancerPolicy, _tool?: string): number {
  return callTimeoutMs;
}

/** Source: ADR 4, ADR 114. */
export const DEFAULT_POLICY: BalancerPolicy = {
  strategy: 'round_robin',
  healthIntervalMs: 30_000,
  probeTimeoutMs: 10_000,
  maxRetries: 3,
  callTimeoutMs: 60_000,
  startTimeoutMs: 300_000,
  session: 'auto',
  sessionFailover: 'auto',
};
