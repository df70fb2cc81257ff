// What is not known of a backend until somebody has asked: the first who needs to know finds out, and whoever comes meanwhile
// waits for what comes of it. What it is, and who keeps it, is the business of whoever opens.

import type { GatewayError } from '../domain/errors.ts';
import { TaskScheduler } from '../domain/task-scheduler.ts';

/** Who needs to know. */
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

  /** `pace`: at which those who waited go on. */
  constructor(isKnown: boolean, scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
    this.#isKnown = isKnown;
  }

  /** False until the first `open` has resolved. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /**
   * Runs `open`, at once when it is known, or when nobody finds out: it is known when `open` has resolved. Who waited fails
   * with what the first one failed with, since it would be no different for him; a first one who only left is followed by
   * the next.
   */
  async run<T>(asker: FlightCaller, open: () => Promise<T>): Promise<T> {
    while (!this.#isKnown && this.#asking !== undefined) await this.#ended(this.#asking, asker);
    return this.#isKnown ? open() : this.#ask(asker.signal, open);
  }

  async #ask<T>(signal: AbortSignal, open: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => undefined); // perhaps nobody waits
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
