// A fact about a backend that the first caller determines, while other callers wait for the result. The caller decides what the
// fact is, and keeps it.

import type { TaskScheduler } from '../domain/task-scheduler.ts';

export class SingleFlight {
  readonly #scheduler: TaskScheduler;
  #isKnown = false;
  #first: Promise<void> | undefined;

  /** `scheduler`: runs the callers that waited. */
  constructor(scheduler: TaskScheduler) {
    this.#scheduler = scheduler;
  }

  /**
   * Runs `open`, at once when the fact is known or no other caller is determining it: it is known when `open` has resolved. If it
   * rejects, the next caller tries. Rejects with the reason of `signal` when that aborts the wait.
   */
  async run<T>(signal: AbortSignal, open: () => Promise<T>): Promise<T> {
    while (!this.#isKnown && this.#first !== undefined) await this.#waitFor(this.#first, signal);
    return this.#isKnown ? open() : this.#runFirst(open);
  }

  async #runFirst<T>(open: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#first = promise;
    try {
      const opened = await open();
      this.#isKnown = true;
      return opened;
    } finally {
      this.#first = undefined;
      resolve();
    }
  }

  /** Thousands may wait, so they continue in several turns of the event loop. */
  async #waitFor(first: Promise<void>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop);
    try {
      await Promise.race([first.then(() => this.#scheduler.turn()), promise]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}
