// The clock, passed to all code that measures time or waits; a spec passes its own. Every call sets one alarm, so it is spared the
// cost of an Observable.

import type { TaskScheduler } from './task-scheduler.ts';

export interface Clock {
  /** Monotonic, in ms. */
  readonly now: () => number;
  /** Rings once after this many ms, unless the returned function was called before. */
  readonly alarm: (waitMs: number, ring: () => void) => () => void;
}

export type Alarm = Clock['alarm'];

/**
 * Alarms that spread over several turns of the event loop when thousands are set to the same time. `ring` must be a function
 * of that alarm alone.
 */
export function alarmOf(scheduler: TaskScheduler): Alarm {
  return (waitMs, ring) => {
    const timer = setTimeout(scheduler.run, waitMs, ring);
    return () => {
      clearTimeout(timer);
      scheduler.forget(ring);
    };
  };
}

/** The same for the timers of an actor. */
export interface ActorClock {
  setTimeout(ring: () => void, waitMs: number): () => void;
  clearTimeout(callOff: () => void): void;
}

/** Makes it of alarms. */
export function clockOf(alarm: Alarm): ActorClock {
  return { setTimeout: (ring, waitMs) => alarm(waitMs, ring), clearTimeout: (callOff) => callOff() };
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
