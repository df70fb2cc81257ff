// How many uncertain calls may be repeated: a share of recent traffic plus an allowance, so that a failing backend is
// not buried under repeats. One per gateway.

import { LIMITS } from '../../domain/limits.ts';

/** Seconds of the window, each with its own counters; old ones are overwritten as time goes on. */
const SECONDS = LIMITS.retryBudgetWindowMs / 1000;

export class RetryBudget {
  readonly #now: () => number;
  readonly #calls = new Array<number>(SECONDS).fill(0);
  readonly #repeats = new Array<number>(SECONDS).fill(0);
  #second = 0;

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
    this.#second = Math.floor(now() / 1000);
  }

  countCall(): void {
    const slot = this.#slot();
    this.#calls[slot] = (this.#calls[slot] ?? 0) + 1;
  }

  /** True, and counted, when one more repeat is within 20 % of the last 10 s plus 10. Source: ADR 9. */
  take(): boolean {
    const slot = this.#slot();
    const allowed = sum(this.#calls) * LIMITS.retryBudgetShare + LIMITS.retryBudgetAllowance;
    if (sum(this.#repeats) + 1 > allowed) return false;
    this.#repeats[slot] = (this.#repeats[slot] ?? 0) + 1;
    return true;
  }

  #slot(): number {
    const second = Math.floor(this.#now() / 1000);
    const passed = Math.min(second - this.#second, SECONDS);
    for (let step = 1; step <= passed; step += 1) {
      const slot = (this.#second + step) % SECONDS;
      this.#calls[slot] = 0;
      this.#repeats[slot] = 0;
    }
    this.#second = second;
    return second % SECONDS;
  }
}

function sum(counts: readonly number[]): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}
