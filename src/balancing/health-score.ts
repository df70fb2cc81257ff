// The health of an instance as one number, and the averages from which it is computed. actors/instances/call-counter.ts
// records them.

/** The two averages of a score. */
export interface Measured {
  /** Exponentially weighted share of calls and probes that were answered, 0 to 1; 1 before the first. */
  readonly successRate: number;
  /** Exponentially weighted time to the answer, in ms; undefined before the first. */
  readonly latencyMs: number | undefined;
}

/** Share of the newest sample in an average: the last ten samples make up nine tenths of it. */
const SAMPLE_SHARE = 0.2;
/** Added to both latencies before they are compared: differences of a few ms between fast instances are noise. */
const LATENCY_NOISE_MS = 5;
/** Greatest distance from the best success rate at which an instance may set the best latency of the pool. */
const RELIABLE_WITHIN = 0.1;

/**
 * Health score, 0 to 100, higher is better:
 *
 *     100 * successRate * (best + 5) / (latency + 5)        both in ms, the fraction at most 1
 *
 * The fraction is 1 while the latency of the candidate or of the pool is unknown: a new instance scores 100 and gets calls,
 * which measure it. Source: ADR 7.
 */
export function healthScore({ successRate, latencyMs }: Measured, bestLatencyMs: number | undefined): number {
  if (latencyMs === undefined || bestLatencyMs === undefined || latencyMs <= bestLatencyMs) {
    return 100 * successRate;
  }
  return (100 * successRate * (bestLatencyMs + LATENCY_NOISE_MS)) / (latencyMs + LATENCY_NOISE_MS);
}

/**
 * The best latency of the pool in ms: the lowest among the candidates that are about as reliable as the most reliable one, so
 * that a broken instance that answers only pings does not make the others look slow. Undefined before the first measurement.
 * Source: ADR 7.
 */
export function bestLatencyMs(candidates: readonly Measured[]): number | undefined {
  let bestSuccess = 0;
  for (const { latencyMs, successRate } of candidates) {
    if (latencyMs !== undefined && successRate > bestSuccess) bestSuccess = successRate;
  }
  let best: number | undefined;
  for (const { latencyMs, successRate } of candidates) {
    if (latencyMs === undefined || successRate < bestSuccess - RELIABLE_WITHIN) continue;
    if (best === undefined || latencyMs < best) best = latencyMs;
  }
  return best;
}

/** Exponentially weighted moving average. The first sample, with `previous` undefined, is the average. Source: ADR 7. */
export function ewma(previous: number | undefined, sample: number): number {
  return previous === undefined ? sample : previous + SAMPLE_SHARE * (sample - previous);
}
