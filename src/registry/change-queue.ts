// Serializes the changes of the registry, and bounds the time of each: a database that does not answer blocks neither its
// change nor the changes behind it for ever. Source: ADR 53.

import { type Delivered, databaseUnavailable, type GatewayError, hasCode } from '../domain/errors.ts';

/** Longest time a change may spend on the store, in ms. The store gives up a single query after half of that. */
const CHANGE_MS = 10_000;
/** Longest wait behind changes that the database fails, in ms. Source: ADR 53. */
const LONGEST_WAIT_MS = 1_000;

export class ChangeQueue {
  readonly #now: () => number;
  /** The last change; the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve();
  /** Resolves when the time of the change that runs now is over. */
  #overtime: Promise<void> | undefined;
  /** Start of the first change that failed since the last success, if the database was unavailable. */
  #failingSinceMs: number | undefined;

  /** `now`: monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Runs `work` when the changes before it have ended, and resolves or rejects as it does. While the database is away
   * the queue is not tried one by one: a change that waited too long fails with DATABASE_UNAVAILABLE before it began.
   * `isReload`: a failed read does not refuse the changes behind it, since it may hang on an old connection.
   */
  take<T>(work: () => Promise<T>, isReload = false): Promise<T> {
    const askedAtMs = this.#now();
    const taken = this.#last.then(() => {
      const waitsSinceMs = Math.max(askedAtMs, this.#failingSinceMs ?? Number.POSITIVE_INFINITY);
      if (this.#now() - waitsSinceMs >= LONGEST_WAIT_MS) throw notInTime('no');
      return this.#run(work, isReload);
    });
    this.#last = taken.catch(() => undefined); // its caller gets the error; the next change runs anyway
    return taken;
  }

  /**
   * To be used by `work` for each query: its answer, or DATABASE_UNAVAILABLE with `ifLate` when the time of the change is
   * over. It ends the work before the next change begins: a late answer changes nothing any more.
   */
  within<T>(asked: Promise<T>, ifLate: Delivered = 'no'): Promise<T> {
    if (this.#overtime === undefined) return asked;
    const late = this.#overtime.then((): never => {
      throw notInTime(ifLate);
    });
    return Promise.race([asked, late]);
  }

  /** Resolves when all changes have ended. */
  idle(): Promise<unknown> {
    return this.#last;
  }

  async #run<T>(work: () => Promise<T>, isReload: boolean): Promise<T> {
    const { promise: overtime, resolve } = Promise.withResolvers<void>();
    this.#overtime = overtime;
    const timer = setTimeout(resolve, CHANGE_MS);
    timer.unref(); // a store that hangs does not keep the process alive
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
