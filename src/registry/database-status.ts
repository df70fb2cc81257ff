// Whether the database answers: one query at a time, with a time limit, and at most one per second, so that many health checks
// cause few queries.

import type { Store } from '../persistence/store.ts';
import { withTimeout } from '../persistence/with-timeout.ts';

export type DatabaseState = 'connected' | 'disconnected';

/** Longest wait for the answer, in ms. */
const PING_MS = 2_000;
/** Longest use of an answer, in ms. */
const FRESH_MS = 1_000;

export class DatabaseStatus {
  readonly #store: Pick<Store, 'ping'>;
  readonly #now: () => number;
  #query: Promise<DatabaseState> | undefined;
  #state: DatabaseState = 'disconnected';
  #answeredAtMs = Number.NEGATIVE_INFINITY;

  constructor(store: Pick<Store, 'ping'>, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** Resolves within two seconds and never rejects. The answer may be a second old. */
  async read(): Promise<DatabaseState> {
    if (this.#now() - this.#answeredAtMs < FRESH_MS) return this.#state;
    this.#query ??= this.#ping();
    return this.#query;
  }

  async #ping(): Promise<DatabaseState> {
    const answer = withTimeout(this.#store.ping(), PING_MS);
    // The store logs the reason of a failure; callers only need the state.
    this.#state = await answer.then(
      () => 'connected' as const,
      () => 'disconnected' as const,
    );
    this.#answeredAtMs = this.#now();
    this.#query = undefined;
    return this.#state;
  }
}
