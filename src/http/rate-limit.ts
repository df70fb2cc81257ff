// Counts the requests of an authenticated caller and refuses those over its limit. The counters are in src/auth.

import type { RateLimit, RateLimiter } from '../auth/rate-limiter.ts';
import type { Principal } from '../domain/account.ts';
import { rateLimitExceeded } from '../domain/error-catalogue.ts';
import { HTTP_LIMITS } from './limits.ts';

export interface CountedRequest {
  /** The caller; set by middleware/authorize.ts on every matched route. */
  principal?: Principal;
  /** Rate limit window of a caller with a limit; written to the headers of every answer. */
  rateLimit?: RateLimit;
  /** Requests counted for this HTTP request so far. */
  counted?: number;
}

/**
 * Counts `count` requests of the caller and stores its window in the state, for the headers of the answer. Throws, or rejects
 * with, RATE_LIMIT_EXCEEDED; without a promise when this process counts alone. A caller without a limit is not counted.
 */
export function consumeRateLimit(
  state: CountedRequest,
  limiter: Pick<RateLimiter, 'take'>,
  count: number,
): void | Promise<void> {
  const { principal } = state;
  state.counted = (state.counted ?? 0) + count;
  if (count === 0 || principal?.hourlyLimit === undefined) return;
  const window = limiter.take(principal, count);
  if (window instanceof Promise) return window.then((window) => apply(window, state));
  apply(window, state);
}

/** The same up to a total of `count` for this HTTP request. */
export function consumeRateLimitUpTo(
  state: CountedRequest,
  limiter: Pick<RateLimiter, 'take'>,
  count: number,
): void | Promise<void> {
  return consumeRateLimit(state, limiter, Math.max(0, count - (state.counted ?? 0)));
}

/** Requests that a body of this size counts as: one for each started 64 kB. Source: ADR 42. */
export function requestsIn(bodyBytes: number): number {
  return Math.max(1, Math.ceil(bodyBytes / HTTP_LIMITS.requestBlockBytes));
}

function apply(window: RateLimit, state: CountedRequest): void {
  state.rateLimit = window;
  const { limit, retryAfterSeconds } = window;
  if (retryAfterSeconds !== undefined) throw rateLimitExceeded(limit, retryAfterSeconds);
}
