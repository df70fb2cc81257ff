// A fact about a backend that the first caller determines, while other callers wait for the result. The caller decides what the
// fact is, and keeps it.

import type { TaskScheduler } from '../domain/task-scheduler.ts';

export class SingleFlight {
  readonly #scheduler: TaskScheduler;
  #isKnown: boolean;
  #first: Promise<void> | undefined;

  /** `scheduler`: runs the callers that waited. */
  constructor(isKnown: boolean, scheduler: TaskScheduler) {
    this.#scheduler = scheduler;
    this.#isKnown = isKnown;
  }

  /** False until the first `open` has resolved. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /**
   * Runs `open`, at once when the fact is known or no other caller is determining it: it is known when `open` has resolved.
   * If the first caller fails, the waiting callers fail with the same error; if it was aborted, the next one tries. Rejects
   * with the reason of `signal` when that aborts the wait.
   */
  async run<T>(signal: AbortSignal, open: () => Promise<T>): Promise<T> {
    while (!this.#isKnown && this.#first !== undefined) await this.#waitFor(this.#first, signal);
    return this.#isKnown ? open() : this.#runFirst(signal, open);
  }

  async #runFirst<T>(signal: AbortSignal, open: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => undefined); // perhaps without a waiting caller
    this.#first = promise;
    try {
      const opened = await open();
      this.#isKnown = true;
      resolve();
      return opened;
    } catch (thrown) {
      if (signal.aborted) resolve();
      else reject(thrown);
      throw thrown;
    } finally {
      this.#first = undefined;
    }
  }

  /** Thousands may wait, so they continue in several turns of the event loop. */
  async #waitFor(first: Promise<void>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop);
    try {
      await Promise.race([this.#settledInTurn(first), promise]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async #settledInTurn(first: Promise<void>): Promise<void> {
    try {
      await first;
    } finally {
      await this.#scheduler.turn();
    }
  }
}
