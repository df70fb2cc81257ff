// Counts by key in windows that start with the first count, in this process, for a bounded number of keys. It answers at once and
// has no timers, because every call of a limited caller passes here: a promise would cost three times as much as the counting.
// What the counts mean is rate-limiter.ts and login-throttle.ts.

import { type RecentlyUsed, recentlyUsed } from './recently-used.ts';

/** A window after a count. */
export interface Window {
  /** More than the limit: it was refused, and is not counted. */
  readonly count: number;
  readonly endsInMs: number;
}

interface OpenWindow {
  count: number;
  readonly endsAtMs: number;
}

export class WindowCounter {
  readonly #windowMs: number;
  readonly #windows: RecentlyUsed<OpenWindow>;

  /** Beyond `keys` the one that was counted longest ago is forgotten. */
  constructor({ windowSeconds, keys }: { readonly windowSeconds: number; readonly keys: number }) {
    this.#windowMs = windowSeconds * 1000;
    this.#windows = recentlyUsed(keys);
  }

  /**
   * The window after so many were added; it starts with its first. What would exceed `limit` uses up nothing. `nowMs`: since 1970.
   */
  add(key: string, nowMs: number, count = 1, limit = Number.POSITIVE_INFINITY): Window {
    const open = this.#open(key, nowMs);
    const sum = (open?.count ?? 0) + count;
    const endsInMs = open === undefined ? this.#windowMs : open.endsAtMs - nowMs;
    if (sum > limit) return { count: sum, endsInMs };
    if (open === undefined) this.#windows.set(key, { count, endsAtMs: nowMs + endsInMs });
    else open.count = sum;
    return { count: sum, endsInMs };
  }

  /** Takes one back that was counted in the window with this end. Nothing happens when that is over: a later one never had it. */
  giveBack(key: string, endsAtMs: number): void {
    const window = this.#windows.peek(key);
    if (window?.endsAtMs === endsAtMs && window.count > 0) window.count -= 1;
  }

  /** The window as it is; none is opened. */
  look(key: string, nowMs: number): Window {
    const open = this.#open(key, nowMs);
    return open === undefined
      ? { count: 0, endsInMs: this.#windowMs }
      : { count: open.count, endsInMs: open.endsAtMs - nowMs };
  }

  #open(key: string, nowMs: number): OpenWindow | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    const leftMs = window.endsAtMs - nowMs;
    // More than a whole window is left when the clock was set back: no caller has to wait until the clock has caught up.
    return leftMs > 0 && leftMs <= this.#windowMs ? window : undefined;
  }
}
