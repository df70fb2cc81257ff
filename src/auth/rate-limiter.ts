// Counts the requests of principals that have an hourly limit, in memory or together with other nodes in Redis.
// It never refuses on its own account: what cannot be counted in Redis is counted here, and served.

import type { Principal } from '../domain/account.ts';
import type { RateLimit, RateLimiter } from './auth.ts';
import { type RecentlyUsed, recentlyUsed } from './recently-used.ts';
/** Fixed window from the first request. Source: spec, "Limits" 1. */
export const WINDOW_SECONDS = 3_600;

/** Principals counted in memory at a time. */
const REMEMBERED_PRINCIPALS = 50_000;

/** Counts that other nodes see; undefined when they cannot be reached, which takes a bounded time at most. */
export interface SharedCounter {
  /** Adds so many, in one step with the question whether they exceed the limit: then they use up nothing. */
  add(key: string, count: number, limit: number): Promise<Window | undefined>;
  close(): void;
}

export interface RateLimiterOptions {
  /** Absent = this process counts for itself. */
  readonly shared?: SharedCounter | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createRateLimiter({ shared, now }: RateLimiterOptions): RateLimiter {
  const own = new WindowCounter({ windowSeconds: WINDOW_SECONDS, keys: REMEMBERED_PRINCIPALS });
  const countedHere = (id: string, limit: number, count: number): RateLimit => {
    const nowMs = now();
    return limitOf(own.add(id, nowMs, count, limit), limit, nowMs, count);
  };
  return {
    take: ({ id, hourlyLimit: limit }: Principal, count = 1) => {
      if (limit === undefined) return limitOf(NOTHING_COUNTED, Number.POSITIVE_INFINITY, now());
      if (shared === undefined) return countedHere(id, limit, count);
      return shared
        .add(id, count, limit)
        .then((window) =>
          window === undefined ? countedHere(id, limit, count) : limitOf(window, limit, now(), count),
        );
    },
    look: ({ id, hourlyLimit: limit }: Principal) => {
      if (limit === undefined || shared !== undefined) return undefined;
      const nowMs = now();
      return limitOf(own.look(id, nowMs), limit, nowMs);
    },
  };
}

const NOTHING_COUNTED: Window = { count: 0, endsInMs: 0 };

/** `added`: so many of the count are new, and not counted when they are too many. */
function limitOf({ count, endsInMs }: Window, limit: number, nowMs: number, added = 0): RateLimit {
  const facts = {
    limit,
    remaining: Math.max(0, limit - (count <= limit ? count : count - added)),
    resetAtSeconds: Math.ceil((nowMs + endsInMs) / 1000),
  };
  return count <= limit ? facts : { ...facts, retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1000)) };
}

// Counts by key in windows that start with the first count, in this process, for a bounded number of keys. It answers at once
// and has no timers, because every call of a limited caller passes here: a promise would cost three times as much as the
// counting.

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
