// Serializes the changes of the registry, and limits the time of each, so that a database that does not answer does not block them
// forever. Source: ADR 53.

import { type Delivered, databaseUnavailable, type GatewayError, hasCode } from '../domain/errors.ts';
import { SerialQueue } from '../domain/serial-queue.ts';

/** Longest time a change may spend on the store, in ms. The store gives up a single query after half of that. */
const CHANGE_MS = 10_000;
/** Longest wait behind changes that fail because the database is unavailable, in ms. Source: ADR 53. */
const LONGEST_WAIT_MS = 1_000;

export class ChangeQueue {
  readonly #now: () => number;
  readonly #changes = new SerialQueue();
  /** Resolves when the time of the running change is over. */
  #overtime: Promise<void> | undefined;
  /** Start of the first of the changes that failed since the last success because the database was unavailable. */
  #failingSinceMs: number | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Runs `work` when earlier changes have ended, and settles like it. While the database is unavailable, a queued change that waited
   * for LONGEST_WAIT_MS fails with DATABASE_UNAVAILABLE before it begins. `isReload`: its failure does not mean that the database is
   * unavailable, because a read may wait for an old connection.
   */
  take<T>(work: () => Promise<T>, isReload = false): Promise<T> {
    const askedAtMs = this.#now();
    return this.#changes.take(async () => {
      const waitsSinceMs = Math.max(askedAtMs, this.#failingSinceMs ?? Number.POSITIVE_INFINITY);
      if (this.#now() - waitsSinceMs >= LONGEST_WAIT_MS) throw notInTime('no');
      return this.#run(work, isReload);
    });
  }

  /**
   * For each query of `work`: its answer, or DATABASE_UNAVAILABLE with `ifLate` when the time of the change is over. Thus the work
   * ends before the next change begins, and a late answer has no effect.
   */
  within<T>(query: Promise<T>, ifLate: Delivered = 'no'): Promise<T> {
    if (this.#overtime === undefined) return query;
    const late = this.#overtime.then((): never => {
      throw notInTime(ifLate);
    });
    return Promise.race([query, late]);
  }

  idle(): Promise<void> {
    return this.#changes.take(async () => {});
  }

  async #run<T>(work: () => Promise<T>, isReload: boolean): Promise<T> {
    const { promise: overtime, resolve } = Promise.withResolvers<void>();
    this.#overtime = overtime;
    const timer = setTimeout(resolve, CHANGE_MS);
    timer.unref(); // so that a store that hangs does not keep the process alive
    const beganAtMs = this.#now();
    let isAway = false;
    try {
      return await work();
    } catch (thrown) {
      isAway = hasCode(thrown, 'DATABASE_UNAVAILABLE');
      throw thrown;
    } finally {
      clearTimeout(timer);
      this.#overtime = undefined;
      this.#failingSinceMs = isAway && !isReload ? (this.#failingSinceMs ?? beganAtMs) : undefined;
    }
  }
}

function notInTime(delivered: Delivered): GatewayError {
  return databaseUnavailable(new Error('the database did not answer in time'), delivered);
}
