// Runs jobs of many callers, a few at a time, so that no caller keeps the others from running theirs. The jobs are
// hashes of passwords and look-ups of API keys. Source: ADR 92.

import { hash } from 'node:crypto';
import { WindowCounter } from '../../domain/memory/window-counter.ts';

/** The jobs of a share in this time decide which job starts next. */
const SHARE_SECONDS = 10;
const MAX_SHARES = 1_000;
/** A known caller with fewer jobs in this time, waiting ones included, goes first. */
const FIRST_JOBS = 4;

interface FairQueueOptions {
  readonly atOnce: number;
  readonly waiting: number;
  /** Milliseconds of a clock that is never set. */
  readonly now: () => number;
  /** The error of a job for which there is no place. */
  readonly refusal: () => Error;
}

/** The counters that a job adds to: a caller with many jobs lately waits longer. */
export interface Shares {
  /** The names that each have a share of the queue, such as the user and the address of the caller. */
  readonly shares: readonly string[];
  /** True for a known caller, which has other shares than unknown ones of the same name. */
  readonly isKnown: boolean;
}

interface WaitingJob {
  readonly isKnown: boolean;
  /** Keys of the counter. */
  readonly keys: readonly string[];
  readonly start: PromiseWithResolvers<void>;
}

/**
 * Says which of two jobs is next: the one whose first differing number is smaller. `notFirst` is 0 for known callers with few
 * jobs, `most` the largest number of jobs of its shares, `sum` the number of jobs of all its shares.
 */
type Order = readonly [notFirst: number, most: number, sum: number];

/**
 * A queue of jobs in memory. The next job is the one whose shares had the fewest jobs lately; in a full queue the job that would
 * be last is refused.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #started: WindowCounter;
  /** Jobs that wait, in the order of their arrival. */
  #waiting: WaitingJob[] = [];
  #running = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
    this.#started = new WindowCounter({ windowSeconds: SHARE_SECONDS, keys: MAX_SHARES });
  }

  /** Throws the refusal when the queue is full, or becomes full while the job waits. */
  async run<T>({ shares, isKnown }: Shares, job: () => Promise<T>): Promise<T> {
    // A hash, because a share may have any length and the counter keeps it.
    const keys = shares.map((share) => hash('sha256', `${isKnown} ${share}`));
    const waiting: WaitingJob = { isKnown, keys, start: Promise.withResolvers() };
    this.#waiting.push(waiting);
    if (this.#running < this.#options.atOnce) this.#startNext();
    else if (this.#waiting.length > this.#options.waiting) this.#refuseLast();
    await waiting.start.promise;
    try {
      return await job();
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }

  #startNext(): void {
    const next = this.#take(
      () => 0,
      (order, best) => compare(order, best) < 0,
    );
    if (next === undefined) return;
    this.#running += 1;
    for (const key of next.keys) this.#started.add(key, this.#nowMs());
    next.start.resolve();
  }

  /** Waiting jobs count here, so that the largest share of the queue gives way. */
  #refuseLast(): void {
    const waitingOf = new Map<string, number>();
    for (const { keys } of this.#waiting)
      for (const key of keys) waitingOf.set(key, (waitingOf.get(key) ?? 0) + 1);
    const last = this.#take(
      (key) => waitingOf.get(key) ?? 0,
      (order, worst) => compare(order, worst) >= 0,
    );
    last?.start.reject(this.#options.refusal());
  }

  /** Removes the job that precedes all others by this comparison. Of equal jobs it is compared with the earlier one. */
  #take(
    waitingOf: (key: string) => number,
    precedes: (one: Order, other: Order) => boolean,
  ): WaitingJob | undefined {
    const nowMs = this.#nowMs();
    let chosen = -1;
    let chosenOrder: Order = [0, 0, 0];
    for (const [index, { isKnown, keys }] of this.#waiting.entries()) {
      let most = 0;
      let sum = 0;
      for (const key of keys) {
        const count = this.#started.add(key, nowMs, 0).count + waitingOf(key);
        most = Math.max(most, count);
        sum += count;
      }
      const order: Order = [isKnown && most <= FIRST_JOBS ? 0 : 1, most, sum];
      if (chosen !== -1 && !precedes(order, chosenOrder)) continue;
      chosen = index;
      chosenOrder = order;
    }
    return chosen === -1 ? undefined : this.#waiting.splice(chosen, 1)[0];
  }

  /** Whole, because the end of a window is computed from its rest. */
  #nowMs(): number {
    return Math.floor(this.#options.now());
  }
}

function compare(a: Order, b: Order): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
