// Turns at work that holds the event loop: a few at a time, in order of arrival. After work that took long, its slot is not
// passed on for a time in proportion to it. Source: ADR 343, 421.

import { type Clock, sleep } from '../../domain/time/clock.ts';
import { FairSlots } from '../../domain/time/fair-slots.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';

/** The rest after work, as a multiple of the time that it took. */
const RESTS = 4;

/** Asynchronous work resolves with the time for which it held the event loop, in ms; work that rejects counts none. */
export type RunInTurn = (work: (() => void) | (() => Promise<number>)) => void;

/** The queue of one kind of work that holds the event loop. `atOnce`: the most asynchronous work that is under way. */
export function createTurns(clock: Clock, atOnce = 1): RunInTurn {
  // Several slots together take the same part of the time as if all of them rested after each work.
  const rests = RESTS + atOnce - 1;
  const slots = new FairSlots({ atOnce, atOncePerShare: atOnce, clock, scheduler: new TaskScheduler() });
  return (work) => {
    const start = async (): Promise<void> => {
      const beganAtMs = clock.now();
      const lasts = work();
      const tookMs = lasts === undefined ? clock.now() - beganAtMs : await lasts.catch(() => 0);
      if (tookMs > 0) await sleep(clock, rests * tookMs);
    };
    void slots.take({ start });
  };
}
