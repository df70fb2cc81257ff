// The wait before something is repeated: an opening, a probe, a subscription, or the start of an actor.

import { LIMITS } from '../limits.ts';

/** The back-off of an instance starts again after it ran for this time. */
export const RESTART_FORGIVEN_MS = 60_000;

/**
 * The wait in ms: LIMITS.restartFirstMs, doubled for every try after the first, at most `longestMs`. `random`
 * (0 to 1) changes it by up to the share `jitter` in both directions, again up to `longestMs` at most; its default
 * changes nothing.
 */
export function backOffMs(tries: number, longestMs: number, random = 0.5, jitter = 0.25): number {
  const doublings = Math.min(Math.max(tries - 1, 0), 30);
  const mostMs = Math.max(longestMs, LIMITS.restartFirstMs);
  const waitMs = Math.min(LIMITS.restartFirstMs * 2 ** doublings, mostMs);
  return Math.min(Math.round(waitMs * (1 + jitter * (2 * random - 1))), mostMs);
}
