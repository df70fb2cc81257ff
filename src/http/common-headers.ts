// The headers that every answer has, whatever it is: written by respond.ts and by event-stream.ts.

import type { RequestState } from './context.ts';

/** What an answer for one caller depends on. */
const CREDENTIALS = 'Authorization, X-API-Key';

/**
 * As `[name, value, name, value]`: the request id, that nobody may keep what needed credentials, and the window of a caller
 * who has one. `saysCaching`: the answer says by itself how it may be kept. Source: spec, "Limits" 2; RFC 9111 section 3.5.
 */
export function commonHeaders(
  { requestId, rateLimit, isPrivate, variesByOrigin }: RequestState,
  saysCaching = false,
): string[] {
  const headers = ['X-Request-ID', requestId, 'X-Content-Type-Options', 'nosniff'];
  if (isPrivate) {
    if (!saysCaching) headers.push('Cache-Control', 'no-store');
    headers.push('Vary', variesByOrigin ? `${CREDENTIALS}, Origin` : CREDENTIALS);
  } else if (variesByOrigin) headers.push('Vary', 'Origin');
  if (rateLimit !== undefined) {
    const { limit, remaining, resetAtSeconds } = rateLimit;
    headers.push('X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining));
    headers.push('X-RateLimit-Reset', String(resetAtSeconds));
  }
  return headers;
}
