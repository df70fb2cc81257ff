// What a strategy is: a choice among candidates that may all receive the request. It never sees an unhealthy, a
// draining, a full or an already tried one; the pool has taken those out.

/** The live view of an instance that strategies read. Reading is cheap: the numbers are in memory. */
export interface Candidate {
  /** Unique in the pool. */
  readonly id: string;
  /** Positive integer. */
  readonly weight: number;
  /** Exchanges it carries now. */
  readonly inFlight: number;
  /** Most exchanges it may carry; at this number the pool leaves it out. */
  readonly capacity: number;
  /** Exponentially weighted share of calls and probes that were answered, 0 to 1; 1 before the first. */
  readonly successRate: number;
  /** Exponentially weighted time to the answer, in ms; undefined before the first. */
  readonly latencyMs: number | undefined;
}

/** Chooses one of at least one candidates, synchronously. May remember what it chose before. */
export type Strategy = <C extends Candidate>(candidates: readonly [C, ...C[]]) => C;

/** Makes a strategy with a memory of its own. `random` returns [0, 1) and is Math.random by default. */
export type StrategyFactory = (options?: { readonly random?: () => number }) => Strategy;
