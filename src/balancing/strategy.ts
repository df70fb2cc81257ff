// The interface of a strategy: a choice among candidates that may all receive the request. The pool has removed unhealthy,
// draining, full and already tried ones.

/** An instance as strategies see it. Reading is cheap: the numbers are in memory. */
export interface Candidate {
  /** Unique in the pool. */
  readonly id: string;
  /** Positive integer. */
  readonly weight: number;
  /** Present exchanges. */
  readonly inFlight: number;
  /** Most exchanges; at this number the pool leaves the candidate out. */
  readonly capacity: number;
  /** Exponentially weighted share of calls and probes that were answered, 0 to 1; 1 before the first. */
  readonly successRate: number;
  /** Exponentially weighted time to the answer, in ms; undefined before the first. */
  readonly latencyMs: number | undefined;
}

/** Chooses one candidate, synchronously. May remember earlier choices. */
export type Strategy = <C extends Candidate>(candidates: readonly [C, ...C[]]) => C;

/** Makes a strategy with a memory of its own. `random` returns [0, 1) and is Math.random by default. */
export type StrategyFactory = (options?: { readonly random?: () => number }) => Strategy;
