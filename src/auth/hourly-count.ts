// Counts requests in windows of an hour, in this process, for a bounded number of callers. It answers at once and has no
// timers, because every call of a limited caller passes here: a promise would cost three times as much as the counting.

import { LRUCache } from 'lru-cache';
import type { Window } from './window-counter.ts';

/** Fixed window from the first request. Source: spec, "Limits" 1. */
export const WINDOW_SECONDS = 3_600;
const WINDOW_MS = WINDOW_SECONDS * 1000;

interface OpenWindow {
  count: number;
  readonly endsAtMs: number;
}

export class HourlyCount {
  readonly #windows: LRUCache<string, OpenWindow>;

  /** Beyond `keys` the one that was counted longest ago is forgotten. */
  constructor(keys: number) {
    this.#windows = new LRUCache({ max: keys });
  }

  /** The window after this count; it starts with its first. `nowMs`: since 1970. */
  add(key: string, nowMs: number): Window {
    const before = this.#windows.get(key);
    const leftMs = before === undefined ? 0 : before.endsAtMs - nowMs;
    // More than an hour is left when the clock was set back: nobody is to wait for it to come round again.
    if (before !== undefined && leftMs > 0 && leftMs <= WINDOW_MS) {
      before.count += 1;
      return { count: before.count, endsInMs: leftMs };
    }
    this.#windows.set(key, { count: 1, endsAtMs: nowMs + WINDOW_MS });
    return { count: 1, endsInMs: WINDOW_MS };
  }
}
