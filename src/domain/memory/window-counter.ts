// Counts by key in windows of time, in this process.

import { LruMap } from './lru-map.ts';

export interface Window {
  /** The requests in the window. A number above the limit: the request was refused and is not counted. */
  readonly count: number;
  readonly endsInMs: number;
}

interface OpenWindow {
  count: number;
  readonly beganAtMs: number;
  endsAtMs: number;
}

/**
 * Counts by key in windows that start with the first count, in this process, for a bounded number of keys.
 * Synchronous and without timers, because each call of a limited caller is counted: a promise would take
 * three times as long as the count, so the in-memory limiter of rate-limiter-flexible is not used.
 */
export class WindowCounter {
  readonly #windowMs: number;
  readonly #windows: LruMap<OpenWindow>;

  /** Counts at most `keys` keys: beyond that the least recently counted one is dropped. */
  constructor({ windowSeconds, keys }: { readonly windowSeconds: number; readonly keys: number }) {
    this.#windowMs = windowSeconds * 1000;
    this.#windows = new LruMap(keys);
  }

  /**
   * The window after adding `count`, which may begin it; 0 only reads. A count over `limit` is not added. `nowMs`:
   * of one monotonic clock.
   */
  add(key: string, nowMs: number, count = 1, limit = Number.POSITIVE_INFINITY): Window {
    const open = this.#open(key, nowMs);
    const sum = (open?.count ?? 0) + count;
    const endsInMs = open === undefined ? this.#windowMs : open.endsAtMs - nowMs;
    if (sum > limit || count === 0) return { count: sum, endsInMs };
    if (open === undefined) this.#windows.set(key, { count, beganAtMs: nowMs, endsAtMs: nowMs + endsInMs });
    else open.count = sum;
    return { count: sum, endsInMs };
  }

  /**
   * Subtracts one that was counted at this time, unless its window was followed by another. An empty window leaves
   * its place to others.
   */
  giveBack(key: string, countedAtMs: number): void {
    const window = this.#windowOf(key, countedAtMs);
    if (window === undefined) return;
    window.count -= 1;
    if (window.count <= 0) this.#windows.delete(key);
  }

  /** Ends the window of a count at this time sooner. */
  shorten(key: string, countedAtMs: number, endsAtMs: number): void {
    const window = this.#windowOf(key, countedAtMs);
    if (window !== undefined) window.endsAtMs = Math.min(window.endsAtMs, endsAtMs);
  }

  #windowOf(key: string, countedAtMs: number): OpenWindow | undefined {
    const window = this.#windows.peek(key);
    return window === undefined || window.beganAtMs > countedAtMs ? undefined : window;
  }

  #open(key: string, nowMs: number): OpenWindow | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    return window.endsAtMs > nowMs ? window : undefined;
  }
}
