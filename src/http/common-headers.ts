// The headers that every answer has, whatever it is: written by respond.ts and by event-stream.ts.

import type { RequestState } from './context.ts';

/** As `[name, value, name, value]`: the request id, and the window of a caller who has one. Source: spec, "Limits" 2. */
export function commonHeaders({ requestId, rateLimit }: RequestState): string[] {
  const headers = ['X-Request-ID', requestId, 'X-Content-Type-Options', 'nosniff'];
  if (rateLimit !== undefined) {
    const { limit, remaining, resetAtSeconds } = rateLimit;
    headers.push('X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining', String(remaining));
    headers.push('X-RateLimit-Reset', String(resetAtSeconds));
  }
  return headers;
}
