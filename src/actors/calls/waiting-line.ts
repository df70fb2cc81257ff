// The line of calls of one template that found every instance full. First come, first served; bounded in length and
// in time. It does not pick: it only says whose turn it is to try.

import { type Subscription, timer } from 'rxjs';
import { LIMITS } from '../../domain/limits.ts';

interface Waiter {
  readonly go: () => boolean;
  readonly timeout: Subscription;
}

export class WaitingLine {
  readonly #waiters = new Set<Waiter>();

  get length(): number {
    return this.#waiters.size;
  }

  /**
   * Joins the line. `go` is called when a place may be free and says whether it took one; who takes it leaves the line,
   * who cannot use it keeps its turn. `giveUp` is called after LIMITS.queueWaitMs. Returns what leaves the line, or
   * undefined when `longest` wait already.
   */
  join(longest: number, go: () => boolean, giveUp: () => void): (() => void) | undefined {
    if (this.#waiters.size >= longest) return undefined;
    const waiter: Waiter = {
      go,
      timeout: timer(LIMITS.queueWaitMs).subscribe(() => {
        this.#waiters.delete(waiter);
        giveUp();
      }),
    };
    this.#waiters.add(waiter);
    return () => {
      waiter.timeout.unsubscribe();
      this.#waiters.delete(waiter);
    };
  }

  /** A place became free: the first in line who can use it takes it. False when nobody could. */
  advance(): boolean {
    for (const waiter of this.#waiters) {
      if (waiter.go()) return true;
    }
    return false;
  }

  /** Who can serve has changed: everybody tries, and learns it when nobody is left to wait for. */
  reconsider(): void {
    for (const waiter of [...this.#waiters]) {
      if (this.#waiters.has(waiter)) waiter.go();
    }
  }
}
