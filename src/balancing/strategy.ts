// What a strategy is: it chooses one of the candidates that may take a call. Their table is in strategies.ts.

import type { JsonFields } from '../domain/json/json.ts';
import type { Measured } from './health-score.ts';

/** An instance as strategies see it. Reading is cheap: the numbers are in memory. */
export interface Candidate extends Measured {
  /** Unique in the pool. */
  readonly id: string;
  /** Positive integer. */
  readonly weight: number;
  /** Calls that fill its capacity: not those whose backend waits for its client. */
  readonly activeCalls: number;
  /** Another node runs it: between equals, one of this node is chosen. Default false. */
  readonly isElsewhere?: boolean;
  /** Calls at an instance of another node that are not among `activeCalls`. Default 0. */
  readonly otherCalls?: number;
  /** Most exchanges; at this number the pool leaves the candidate out. */
  readonly capacity: number;
}

/** What a strategy may read of the request that it chooses for; of a new session only its caller is known. */
export interface StrategyRequest {
  /** Id of the principal, by which limits are counted; undefined for an anonymous one. */
  readonly caller?: string | undefined;
  readonly params?: JsonFields | undefined;
}

/**
 * Chooses one of the candidates that may take the call (`mayTake`), synchronously; undefined when none may.
 * `candidates` are in the order of their ids, and another list whenever they change. Asks about as few as
 * possible. May remember earlier choices.
 */
export type Strategy<C extends Candidate> = (
  candidates: readonly C[],
  mayTake: (candidate: C) => boolean,
  request: StrategyRequest,
) => C | undefined;

export interface StrategyOptions {
  /** The settings in force. Default: those of the gateway. */
  readonly policy?: () => { readonly hashOn: string };
  /** Active calls at all candidates. Default: their sum. */
  readonly activeCalls?: () => number;
  /** Returns [0, 1). Default: Math.random. */
  readonly random?: () => number;
}

/** Makes a strategy with its own memory. */
export type StrategyFactory = <C extends Candidate>(options?: StrategyOptions) => Strategy<C>;

export interface StrategyRow {
  /** Completes "a call goes to ...". */
  readonly meaning: string;
  readonly create: StrategyFactory;
}
