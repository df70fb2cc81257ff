// Serializes the changes of the registry, so that a queue behind a database that does not answer ends with its first change. The
// store bounds the time of each query. Source: ADR 53.

import { hasCode } from '../domain/errors/errors.ts';
import { databaseUnavailable } from '../domain/errors/gateway-errors.ts';
import { SerialQueue } from '../domain/time/serial-queue.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';

/** The longest wait behind changes that fail because the database is unavailable, in ms. */
const MAX_WAIT_MS = 1_000;

/** The one queue of a registry: its changes, and its reads of the store. */
export class ChangeQueue {
  /** A file database answers within the same turn of the event loop: without it, thousands of changes would be one turn. */
  readonly #scheduler: TaskScheduler;
  readonly #now: () => number;
  readonly #changes = new SerialQueue();
  /** Start of the first of the changes that failed since the last success because the database was unavailable. */
  #failingSinceMs = Number.POSITIVE_INFINITY;

  constructor(scheduler: TaskScheduler, now: () => number) {
    this.#scheduler = scheduler;
    this.#now = now;
  }

  /**
   * Runs `work` when earlier changes have ended, and settles like it. While the database is unavailable, a queued
   * change that waited for MAX_WAIT_MS fails with DATABASE_UNAVAILABLE before it begins. The failure of a
   * `read` does not mean that the database is unavailable, because a read may wait for an old connection.
   */
  take<T>(work: () => Promise<T>, kind: 'change' | 'read' = 'change'): Promise<T> {
    const askedAtMs = this.#now();
    return this.#changes.take(async () => {
      await this.#scheduler.turn();
      const beganAtMs = this.#now();
      if (beganAtMs - Math.max(askedAtMs, this.#failingSinceMs) >= MAX_WAIT_MS)
        throw databaseUnavailable(new Error('the database did not answer in time'), 'no');
      const failingSinceMs = Math.min(beganAtMs, this.#failingSinceMs);
      this.#failingSinceMs = Number.POSITIVE_INFINITY;
      try {
        return await work();
      } catch (thrown) {
        if (kind === 'change' && hasCode(thrown, 'DATABASE_UNAVAILABLE'))
          this.#failingSinceMs = failingSinceMs;
        throw thrown;
      }
    });
  }

  idle(): Promise<void> {
    return this.#changes.take(async () => {});
  }
}
