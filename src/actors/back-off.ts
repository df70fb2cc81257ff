// The wait before a repeat: of an opening, a probe, a subscription, or the start of an actor.

import { LIMITS } from '../domain/limits.ts';

/** The first wait doubled for every try after the first, times 0.75 to 1.25 by `random`, at most `longestMs`. */
export function backOffMs(tries: number, longestMs: number, random: number): number {
  const doublings = Math.min(Math.max(tries - 1, 0), 30);
  const mostMs = Math.max(longestMs, LIMITS.restartFirstMs);
  const waitMs = Math.min(LIMITS.restartFirstMs * 2 ** doublings, mostMs);
  return Math.min(Math.round(waitMs * (0.75 + random / 2)), mostMs);
}
