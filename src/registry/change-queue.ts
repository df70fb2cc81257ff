// Lets changes of the registry happen one after the other, and sees to it that a database that does not answer holds up
// neither the change that asks it nor those behind it for ever. What a change does is its own business.

import { type Delivered, databaseUnavailable, type GatewayError, hasCode } from '../domain/errors.ts';

/** Longest time a change may spend on the store, in ms. The store gives up a single question after half of that. */
const TURN_MS = 10_000;
/** Longest wait behind changes that the database fails, in ms. Source: ADR 53. */
const PATIENCE_MS = 1_000;

export class ChangeQueue {
  readonly #now: () => number;
  /** The change that was asked for last; the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve();
  /** Resolves when the time of the change that runs now is over. */
  #overtime: Promise<void> | undefined;
  /** When the first of the changes began that the database has failed since the last one that it took. */
  #failingSinceMs: number | undefined;

  /** `now`: monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Runs `work` when the changes before it have ended, and resolves or rejects as it does. While the database is away
   * a line of changes does not try one by one: DATABASE_UNAVAILABLE for one that waited too long, without having begun.
   * `isReload`: work that only reads may still hang on an old connection when the database is back; a change behind it is tried.
   */
  take<T>(work: () => Promise<T>, isReload = false): Promise<T> {
    const askedAtMs = this.#now();
    const taken = this.#last.then(() => {
      const waitsSinceMs = Math.max(askedAtMs, this.#failingSinceMs ?? Number.POSITIVE_INFINITY);
      if (this.#now() - waitsSinceMs >= PATIENCE_MS) throw notInTime('no');
      return this.#run(work, isReload);
    });
    this.#last = taken.catch(() => undefined); // its caller hears of it; the next change is not its victim
    return taken;
  }

  /**
   * To be used by `work` for every question to the store: its answer, or DATABASE_UNAVAILABLE when the time of the change is
   * over, which says `ifLate` of the change. That is what makes it safe to go on with the next one: the work that asked ends here
   * and touches nothing any more, however late the answer comes.
   */
  within<T>(asked: Promise<T>, ifLate: Delivered = 'no'): Promise<T> {
    if (this.#overtime === undefined) return asked;
    const late = this.#overtime.then((): never => {
      throw notInTime(ifLate);
    });
    return Promise.race([asked, late]);
  }

  /** Resolves when every change that was asked for has ended. */
  idle(): Promise<unknown> {
    return this.#last;
  }

  async #run<T>(work: () => Promise<T>, isReload: boolean): Promise<T> {
    const { promise: overtime, resolve } = Promise.withResolvers<void>();
    this.#overtime = overtime;
    const timer = setTimeout(resolve, TURN_MS);
    timer.unref(); // a store that hangs keeps no process from its end
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
