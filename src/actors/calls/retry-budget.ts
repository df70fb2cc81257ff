// The retry budget of the gateway: how many retries it makes for its recent traffic. Calls pay from it for retries and hedges
// (tries.ts); a search for a binding pays for an opening beside a slow one. Source: ADR 40.

import { RecentCount } from '../../balancing/recent-count.ts';

/** The retry budget is this share of the calls of the last ten seconds, plus the allowance. */
export const RETRY_BUDGET_SHARE = 0.2;
/** Retries within ten seconds that need no calls. */
export const RETRY_BUDGET_ALLOWANCE = 10;

/**
 * Bounds the retries of calls that may have been delivered, for the whole gateway, by its recent traffic: unbounded
 * retries would overload a failing backend.
 */
export class RetryBudget {
  readonly #now: () => number;
  readonly #calls = new RecentCount();
  readonly #retries = new RecentCount();

  /** `now`: a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  countCall(): void {
    this.#calls.add(this.#now());
  }

  /** True when `take` would allow one more retry. */
  get hasRoom(): boolean {
    const now = this.#now();
    const most = this.#calls.sum(now) * RETRY_BUDGET_SHARE + RETRY_BUDGET_ALLOWANCE;
    return this.#retries.sum(now) + 1 <= most;
  }

  /** Counts one more retry and returns true, if the budget has room for it. */
  take(): boolean {
    if (!this.hasRoom) return false;
    this.#retries.add(this.#now());
    return true;
  }
}
