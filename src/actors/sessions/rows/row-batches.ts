// Work on many rows of the store in few operations: reads and claims of sessions. Source: ADR 143.

import type { Clock } from '../../../domain/time/clock.ts';
import { MAX_SESSION_ROWS } from '../../../persistence/store.ts';

/**
 * Pause after a group of reads or claims, in ms, in which more of the same burst arrive: fewer statements for as many
 * sessions.
 */
const PAUSE_MS = 50;

interface WaitingItem<Item, Result> extends PromiseWithResolvers<Result> {
  readonly item: Item;
}

/**
 * Does work in batches, one at a time. The first item is done alone and at once; items that arrive during this, or
 * during the pause after it, form the next batch.
 */
export class RowBatches<Item, Result> {
  readonly #clock: Clock;
  readonly #work: (items: readonly Item[]) => Promise<(item: Item) => Result>;
  readonly #waiting: WaitingItem<Item, Result>[] = [];
  #isWorking = false;
  #endPause = (): void => {};

  constructor(clock: Clock, work: (items: readonly Item[]) => Promise<(item: Item) => Result>) {
    this.#clock = clock;
    this.#work = work;
  }

  add(item: Item): Promise<Result> {
    const waiting = { item, ...Promise.withResolvers<Result>() };
    this.#waiting.push(waiting);
    if (!this.#isWorking) void this.#drainQueue();
    else if (this.#waiting.length >= MAX_SESSION_ROWS) this.#endPause();
    return waiting.promise;
  }

  async #drainQueue(): Promise<void> {
    this.#isWorking = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_SESSION_ROWS);
      try {
        const resultOf = await this.#work(batch.map(({ item }) => item));
        for (const { item, resolve } of batch) resolve(resultOf(item));
      } catch (thrown) {
        for (const { reject } of batch) reject(thrown);
      }
      if (this.#waiting.length < MAX_SESSION_ROWS) await this.#pause();
    }
    this.#isWorking = false;
  }

  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.background.alarm(PAUSE_MS, resolve);
    this.#endPause = resolve;
    await promise;
    cancel();
  }
}
