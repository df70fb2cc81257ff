// Counts the requests of principals that have an hourly limit, in memory or together with other nodes in Redis.
// It never refuses on its own account: what cannot be counted in Redis is counted here, and served.

import type { Principal } from '../domain/account.ts';
import type { RateLimit, RateLimiter } from './auth.ts';
import { HourlyCount } from './hourly-count.ts';
import type { Window } from './window-counter.ts';

/** Principals counted in memory at a time. */
const REMEMBERED_PRINCIPALS = 50_000;

/** Counts that other nodes see; undefined when they cannot be reached, which takes a bounded time at most. */
export interface SharedCounter {
  /** Adds so many; fewer than none takes a count back. */
  add(key: string, count: number): Promise<Window | undefined>;
  close(): void;
}

export interface RateLimiterOptions {
  /** Absent = this process counts for itself. */
  readonly shared?: SharedCounter | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createRateLimiter({ shared, now }: RateLimiterOptions): RateLimiter {
  const own = new HourlyCount(REMEMBERED_PRINCIPALS);
  const countedHere = (id: string, limit: number, count: number): RateLimit => {
    const nowMs = now();
    const window = own.add(id, nowMs, count);
    if (window.count > limit) own.add(id, nowMs, -count); // what is refused uses up nothing
    return limitOf(window, limit, nowMs, count);
  };
  return {
    take: ({ id, hourlyLimit: limit }: Principal, count = 1) => {
      if (limit === undefined) return limitOf(NOTHING_COUNTED, Number.POSITIVE_INFINITY, now());
      if (shared === undefined) return countedHere(id, limit, count);
      return shared.add(id, count).then((window) => {
        if (window === undefined) return countedHere(id, limit, count);
        if (window.count > limit) void shared.add(id, -count); // it never rejects
        return limitOf(window, limit, now(), count);
      });
    },
    look: ({ id, hourlyLimit: limit }: Principal) => {
      if (limit === undefined || shared !== undefined) return undefined;
      const nowMs = now();
      return limitOf(own.look(id, nowMs), limit, nowMs);
    },
  };
}

const NOTHING_COUNTED: Window = { count: 0, endsInMs: 0 };

/** `added`: so many of the count are new, and taken back when they are too many. */
function limitOf({ count, endsInMs }: Window, limit: number, nowMs: number, added = 0): RateLimit {
  const facts = {
    limit,
    remaining: Math.max(0, limit - (count <= limit ? count : count - added)),
    resetAtSeconds: Math.ceil((nowMs + endsInMs) / 1000),
  };
  return count <= limit ? facts : { ...facts, retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1000)) };
}
