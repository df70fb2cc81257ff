// The interface of a strategy, which chooses one of the candidates that may take a call. strategies.ts has the table of
// all.

import type { JsonFields } from '../domain/json/json.ts';
import type { Measured } from './health-score.ts';

/** An instance as strategies see it. Reading it is cheap, since all numbers are in memory. */
export interface Candidate extends Measured {
  /** The id, unique in the pool. */
  readonly id: string;
  /** The weight, a positive integer. */
  readonly weight: number;
  /** The number of calls that fill the capacity, without those whose backend waits for its client. */
  readonly activeCalls: number;
  /** True when another node runs the instance: between equal candidates, one of this node is chosen. Default: false. */
  readonly isElsewhere?: boolean;
  /** The number of calls at an instance of another node that are not among `activeCalls`. Default: 0. */
  readonly otherCalls?: number;
  /** The most calls at a time; at this number the pool leaves the candidate out. */
  readonly capacity: number;
}

/** What a strategy may read of the request for which it chooses. For a new session only the caller is known. */
export interface StrategyRequest {
  /** The id of the principal. */
  readonly callerId?: string | undefined;
  readonly params?: JsonFields | undefined;
}

/**
 * Chooses one of the candidates that may take the call (`mayTake`), synchronously; undefined when none may.
 * `candidates` are in the order of their ids; a change makes a new list. A strategy asks `mayTake` about as few
 * candidates as possible, and may remember earlier choices.
 */
export type Strategy<C extends Candidate> = (
  candidates: readonly C[],
  mayTake: (candidate: C) => boolean,
  request: StrategyRequest,
) => C | undefined;

export interface StrategyOptions {
  /** The settings in force. */
  readonly policy: () => { readonly hashOn: string };
  /** The number of active calls at all candidates. */
  readonly activeCalls: () => number;
  /** A number in [0, 1). */
  readonly random: () => number;
}

export interface StrategyRow {
  /** Completes the sentence "a call goes to ...". */
  readonly meaning: string;
  /** Makes a strategy with a memory of its own. */
  readonly create: <C extends Candidate>(options: StrategyOptions) => Strategy<C>;
}
