// Counts the requests of principals that have an hourly limit, in memory or together with other nodes in Redis.
// It never refuses on its own account: what cannot be counted in Redis is counted here, and served.

import type { Principal } from '../domain/account.ts';
import type { RateLimit, RateLimiter } from './auth.ts';
import { type Window, WindowCounter } from './window-counter.ts';

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
