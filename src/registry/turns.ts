// Lets changes of the registry happen one after the other, and sees to it that a database that does not answer holds up
// neither the change that asks it nor those behind it for ever. What a change does is its own business.

import { type Delivered, databaseUnavailable, type GatewayError, hasCode } from '../domain/errors.ts';

/** Longest time a change may spend on the store, in ms. The store gives up a single question earlier than that. */
const TURN_MS = 15_000;
/** Who has waited so long behind a change that the database failed is refused too, in ms. */
const PATIENCE_MS = 15_000;

export class Turns {
  readonly #now: () => number;
  /** The change that was asked for last; the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve();
  /** Rejects when the time of the change that runs now is over. */
  #overtime: Promise<never> | undefined;
  #wasFailed = false;

  /** `now`: monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Runs `work` when the changes before it have ended, and resolves or rejects as it does. While the database is away
   * a line of changes does not try one by one: DATABASE_UNAVAILABLE for who waited too long, without having begun.
   */
  take<T>(work: () => Promise<T>): Promise<T> {
    const askedAtMs = this.#now();
    const taken = this.#last.then(() => {
      if (this.#wasFailed && this.#now() - askedAtMs >= PATIENCE_MS) throw notInTime();
      return this.#run(work);
    });
    this.#last = taken.catch(() => undefined); // its caller hears of it; the next change is not its victim
    return taken;
  }

  /**
   * To be used by `work` for every question to the store: its answer, or DATABASE_UNAVAILABLE of unknown outcome when
   * the time of the change is over. That is what makes it safe to go on with the next one: the work that asked ends here and touches
   * nothing any more, however late the answer comes.
   */
  within<T>(asked: Promise<T>): Promise<T> {
    return this.#overtime === undefined ? asked : Promise.race([asked, this.#overtime]);
  }

  /** Resolves when every change that was asked for has ended. */
  idle(): Promise<unknown> {
    return this.#last;
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    const { promise: overtime, reject } = Promise.withResolvers<never>();
    overtime.catch(() => undefined); // nobody may be waiting for the store when the time is over
    this.#overtime = overtime;
    const timer = setTimeout(() => reject(notInTime('unknown')), TURN_MS);
    timer.unref(); // a store that hangs keeps no process from its end
    this.#wasFailed = false;
    try {
      return await work();
    } catch (thrown) {
      this.#wasFailed = hasCode(thrown, 'DATABASE_UNAVAILABLE');
      throw thrown;
    } finally {
      clearTimeout(timer);
      this.#overtime = undefined;
    }
  }
}

function notInTime(delivered: Delivered = 'no'): GatewayError {
  return databaseUnavailable(new Error(`the database did not answer within ${TURN_MS / 1000} s`), delivered);
}
