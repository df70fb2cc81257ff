// Counts requests of a known caller and refuses what is one too many. How counting works is src/auth.

import type { RateLimit, RateLimiter } from '../auth/auth.ts';
import { rateLimitExceeded } from '../domain/account-errors.ts';
import { HTTP_LIMITS } from './limits.ts';
import type { RequestState } from './request.ts';

/**
 * Counts so many requests of `state.principal` at once and leaves the window in the state, for the headers of the
 * answer. Throws, or rejects with, RATE_LIMIT_EXCEEDED; without a promise when this process counts for itself. A caller
 * without a limit is not counted.
 */
export function consumeRateLimit(
  state: RequestState,
  limiter: Pick<RateLimiter, 'take'>,
  count: number,
): void | Promise<void> {
  const { principal } = state;
  state.charged = (state.charged ?? 0) + count;
  if (count === 0 || principal?.hourlyLimit === undefined) return;
  const window = limiter.take(principal, count);
  if (window instanceof Promise) return window.then((counted) => weigh(counted, state));
  weigh(window, state);
}

/** Counts what is still missing until so many are counted for this HTTP request; see `charge`. */
export function consumeRateLimitUpTo(
  state: RequestState,
  limiter: Pick<RateLimiter, 'take'>,
  count: number,
): void | Promise<void> {
  return consumeRateLimit(state, limiter, Math.max(0, count - (state.charged ?? 0)));
}

/** Requests that a body of so many bytes counts as: one for each started 64 kB. Source: ADR 42. */
export function requestsIn(bodyBytes: number): number {
  return Math.max(1, Math.ceil(bodyBytes / HTTP_LIMITS.chargedBodyBytes));
}

function weigh(window: RateLimit, state: RequestState): void {
  state.rateLimit = window;
  const { limit, retryAfterSeconds } = window;
  if (retryAfterSeconds !== undefined) throw rateLimitExceeded(limit, retryAfterSeconds);
}
