// Counts requests in windows of an hour, in this process, for a bounded number of callers. It answers at once and has no
// timers, because every call of a limited caller passes here: a promise would cost three times as much as the counting.

import { type RecentlyUsed, recentlyUsed } from './recently-used.ts';
import type { Window } from './window-counter.ts';

/** Fixed window from the first request. Source: spec, "Limits" 1. */
export const WINDOW_SECONDS = 3_600;
const WINDOW_MS = WINDOW_SECONDS * 1000;

interface OpenWindow {
  count: number;
  readonly endsAtMs: number;
}

export class HourlyCount {
  readonly #windows: RecentlyUsed<OpenWindow>;

  /** Beyond `keys` the one that was counted longest ago is forgotten. */
  constructor(keys: number) {
    this.#windows = recentlyUsed(keys);
  }

  /** The window after so many were added; it starts with its first. `nowMs`: since 1970. */
  add(key: string, nowMs: number, count = 1): Window {
    const open = this.#open(key, nowMs);
    if (open !== undefined) {
      open.count += count;
      return { count: open.count, endsInMs: open.endsAtMs - nowMs };
    }
    this.#windows.set(key, { count, endsAtMs: nowMs + WINDOW_MS });
    return { count, endsInMs: WINDOW_MS };
  }

  /** The window as it is; none is opened. */
  look(key: string, nowMs: number): Window {
    const open = this.#open(key, nowMs);
    return open === undefined
      ? { count: 0, endsInMs: WINDOW_MS }
      : { count: open.count, endsInMs: open.endsAtMs - nowMs };
  }

  #open(key: string, nowMs: number): OpenWindow | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    const leftMs = window.endsAtMs - nowMs;
    // More than an hour is left when the clock was set back: nobody is to wait for it to come round again.
    return leftMs > 0 && leftMs <= WINDOW_MS ? window : undefined;
  }
}
