// One timer for many waits of the same length: a timer for each would be a fiftieth of the garbage of a call, and
// hardly any rings.

import { type Linked, LinkedSet } from '../memory/linked-set.ts';
import type { Timing } from './task-scheduler.ts';

/** The time within which waits end together, in ms: the later ones end early by so much. */
const TOGETHER_MS = 50;

/** A waiter of a shared timer, of one timer at a time. */
export interface Waiter extends Linked {
  dueAtMs: number;
  /** The wait is over. */
  onDue(): void;
}

interface SharedTimerOptions extends Timing {
  /** The wait of each waiter, in ms. */
  readonly waitMs: number;
}

/** Calls each waiter when its time is over, unless it was deleted before. */
export class SharedTimer {
  readonly #options: SharedTimerOptions;
  /** The waiters, in the order in which they began. */
  readonly #waiting = new LinkedSet<Waiter>();
  /** The time at which the timer rings; undefined while it is not set. */
  #ringsAtMs: number | undefined;

  constructor(options: SharedTimerOptions) {
    this.#options = options;
  }

  add(waiter: Waiter): void {
    const { waitMs, clock } = this.#options;
    waiter.dueAtMs = clock.now() + waitMs;
    this.#waiting.add(waiter);
    if (this.#ringsAtMs === undefined) this.#arm(waiter.dueAtMs, waitMs);
  }

  /** False when it does not wait. */
  delete(waiter: Waiter): boolean {
    return this.#waiting.delete(waiter);
  }

  #arm(ringsAtMs: number, waitMs: number): void {
    this.#ringsAtMs = ringsAtMs;
    this.#options.clock.alarm(waitMs, () => this.#ring(ringsAtMs));
  }

  #ring(dueMs: number): void {
    this.#ringsAtMs = undefined;
    // A timer may ring a fraction of a millisecond early.
    const nowMs = Math.max(this.#options.clock.now(), dueMs);
    let { first } = this.#waiting;
    for (; first !== undefined && first.dueAtMs <= nowMs + TOGETHER_MS; first = this.#waiting.first) {
      const due = first;
      this.#waiting.delete(due);
      this.#options.scheduler.run(() => due.onDue());
    }
    if (first !== undefined && this.#ringsAtMs === undefined) this.#arm(first.dueAtMs, first.dueAtMs - nowMs);
  }
}
