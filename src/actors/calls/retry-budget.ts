// How many uncertain calls may be repeated: a share of recent traffic plus an allowance, so that a failing backend is
// not buried under repeats. One per gateway.

import { RecentCounts } from '../../balancing/recent-counts.ts';
import { LIMITS } from '../../domain/limits.ts';

export class RetryBudget {
  readonly #now: () => number;
  /** Calls, and repeats. */
  readonly #counts: RecentCounts;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
    this.#counts = new RecentCounts(now());
  }

  countCall(): void {
    this.#counts.addFirst(this.#now());
  }

  /** True, and counted, when one more repeat is within 20 % of the last 10 s plus 10. Source: ADR 9. */
  take(): boolean {
    const now = this.#now();
    const [calls, repeats] = this.#counts.sums(now);
    if (repeats + 1 > calls * LIMITS.retryBudgetShare + LIMITS.retryBudgetAllowance) return false;
    this.#counts.addSecond(now);
    return true;
  }
}
