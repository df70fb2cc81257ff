// Asks again and again whether the callers of open event streams may still have them: a stream of somebody whose key was
// revoked would go on for ever. One timer for all, a few of them at a time.

import { TaskScheduler } from '../domain/task-scheduler.ts';
import type { Refusal } from './caller-check.ts';

/** The checks of one round are spread over so many moments. */
const MOMENTS = 10;

/** A stream that somebody has. */
export interface Watched {
  /** Why they may not have it any longer. Never throws or rejects. */
  check(): Refusal | Promise<Refusal>;
  /** Ends it, which also ends its being watched. */
  bar(refusal: NonNullable<Refusal>): void;
}

export class CallerWatch {
  readonly #roundMs: number;
  readonly #scheduler: TaskScheduler;
  /** Longest unchecked first. */
  readonly #queue = new Set<Watched>();
  readonly #asking = new Set<Watched>();
  /** What is due: MOMENTS of it are one check. */
  #due = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Everybody is asked about once in so many ms. `pace`: at which the streams of somebody who has thousands are ended. */
  constructor(roundMs: number, scheduler = new TaskScheduler()) {
    this.#roundMs = roundMs;
    this.#scheduler = scheduler;
  }

  /** Watches one until the returned function is called. */
  watch(watched: Watched): () => void {
    this.#queue.add(watched);
    this.#timer ??= setInterval(() => this.#tick(), this.#roundMs / MOMENTS).unref();
    return () => this.#queue.delete(watched);
  }

  /** Not at the end of the last stream: where calls follow each other, that would be a timer for each. */
  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#due = 0;
  }

  #tick(): void {
    if (this.#queue.size === 0) {
      this.#rest();
      return;
    }
    this.#due += this.#queue.size;
    // Those that are checked go to the end of the line: never more of them than there are.
    for (const watched of this.#queue) {
      if (this.#due < MOMENTS) return;
      this.#due -= MOMENTS;
      this.#queue.delete(watched);
      this.#queue.add(watched);
      this.#check(watched);
    }
  }

  #check(watched: Watched): void {
    if (this.#asking.has(watched)) return;
    const refusal = watched.check();
    if (!(refusal instanceof Promise)) {
      this.#judge(watched, refusal);
      return;
    }
    this.#asking.add(watched);
    void refusal.then((said) => {
      this.#asking.delete(watched);
      this.#judge(watched, said);
    });
  }

  #judge(watched: Watched, refusal: Refusal): void {
    if (refusal === undefined) return;
    this.#scheduler.run(() => {
      if (this.#queue.has(watched)) watched.bar(refusal);
    });
  }
}
