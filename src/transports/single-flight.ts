// A fact about a backend that is unknown until the first attempt: the first caller finds out, and callers that come meanwhile
// wait for the result. The caller decides what the fact is, and keeps it.

import type { GatewayError } from '../domain/errors.ts';
import { TaskScheduler } from '../domain/task-scheduler.ts';

/** A caller that needs the fact. */
export interface FlightCaller {
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** What the wait then fails with. */
  readonly calledOff: () => GatewayError;
}

export class SingleFlight {
  readonly #scheduler: TaskScheduler;
  #isKnown: boolean;
  #asking: Promise<void> | undefined;

  /** `scheduler`: runs the callers that waited. */
  constructor(isKnown: boolean, scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
    this.#isKnown = isKnown;
  }

  /** False until the first `open` has resolved. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /**
   * Runs `open`, at once when the fact is known, or when no other caller is finding out: it is known when `open` has resolved.
   * The callers that waited fail with the failure of the first one, since theirs would be the same; after a first one that
   * only left, the next one tries.
   */
  async run<T>(asker: FlightCaller, open: () => Promise<T>): Promise<T> {
    while (!this.#isKnown && this.#asking !== undefined) await this.#ended(this.#asking, asker);
    return this.#isKnown ? open() : this.#ask(asker.signal, open);
  }

  async #ask<T>(signal: AbortSignal, open: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => undefined); // perhaps without a waiting caller
    this.#asking = promise;
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
      this.#asking = undefined;
    }
  }

  /** Thousands may wait: what each of them does next is not done in one turn of the event loop. */
  async #ended(asking: Promise<void>, { signal, calledOff }: FlightCaller): Promise<void> {
    if (signal.aborted) throw calledOff();
    const { promise, reject } = Promise.withResolvers<never>();
    const stop = (): void => reject(calledOff());
    signal.addEventListener('abort', stop);
    try {
      await Promise.race([this.#inTurn(asking), promise]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async #inTurn(asking: Promise<void>): Promise<void> {
    try {
      await asking;
    } finally {
      await this.#scheduler.turn();
    }
  }
}
