// The clock of all code that measures time or waits; specs pass their own. An alarm is no Observable, because every call sets one.

import type { TaskScheduler } from './task-scheduler.ts';

export interface Clock {
  /** Monotonic, in ms. */
  readonly now: () => number;
  /** Calls `callback` once, after `waitMs`. The returned function cancels the call. */
  readonly alarm: (waitMs: number, callback: () => void) => () => void;
}

export type Alarm = Clock['alarm'];

/** Times of two clocks that differ by more than this are not compared, in ms. */
export const LARGEST_SKEW_MS = 60_000;
const STEADY_SHARE = 0.1;

/**
 * The returned function tells whether the wall clock advanced as the monotonic clock did, within 10 %, since its last call, or
 * since it was made.
 */
export function steadiness(wall: () => number, monotonic: () => number): () => boolean {
  let wallMs = wall();
  let monotonicMs = monotonic();
  return () => {
    const wallPassedMs = wall() - wallMs;
    const passedMs = monotonic() - monotonicMs;
    wallMs += wallPassedMs;
    monotonicMs += passedMs;
    return Math.abs(wallPassedMs - passedMs) <= STEADY_SHARE * passedMs;
  };
}

/** Age of a call at which its stream begins without a message, so that client and proxies see that it is under way. */
export const SLOW_MS = 1_000;

/** Spreads alarms that are due at the same time over several turns of the event loop. */
export function alarmOf(scheduler: TaskScheduler): Alarm {
  return (waitMs, callback) => {
    let isCancelled = false;
    const timer = setTimeout(scheduler.run, waitMs, () => {
      if (!isCancelled) callback();
    });
    return () => {
      isCancelled = true;
      clearTimeout(timer);
    };
  };
}

/** The clock of xstate with these alarms. */
export function clockOf(alarm: Alarm) {
  return {
    setTimeout: (callback: () => void, waitMs: number) => alarm(waitMs, callback),
    clearTimeout: (cancel: () => void) => cancel(),
  };
}

/** True when it resolves or rejects within `ms`. Never rejects. */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, ms, false);
  const settles = () => true;
  const settled = await Promise.race([promise.then(settles, settles), late.promise]);
  clearTimeout(timer);
  return settled;
}

/** Writes times in ms since 1970 as ISO 8601. Remembers the last one: many calls end in the same millisecond. */
export function isoTimes(): (atMs: number) => string {
  let lastMs = Number.NaN;
  let last = '';
  return (atMs) => {
    if (atMs !== lastMs) last = new Date(atMs).toISOString();
    lastMs = atMs;
    return last;
  };
}
