// Turns of the event loop: a task scheduler that depends on no clock, and a counter of events per turn.

import { setImmediate as immediate } from 'node:timers/promises';
import { TASKS_PER_TURN, TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';

/** A scheduler that limits tasks per turn by number only, so that the speed of the machine does not matter. */
export function untimedScheduler(perTurn: number = TASKS_PER_TURN): TaskScheduler {
  return new TaskScheduler({ perTurn, turnMs: Number.POSITIVE_INFINITY });
}

/** A scheduler some of whose methods are those of a spec. */
export function schedulerWith(own: Partial<Pick<TaskScheduler, 'run' | 'each' | 'turn'>>): TaskScheduler {
  return Object.assign(untimedScheduler(), own);
}

/** Waits for this many turns. */
export async function passTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await immediate();
}

/** Resolves with the turns of the event loop that passed until the work was done. */
export async function turnsOf(run: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let timer = setImmediate(count);
  function count() {
    turns += 1;
    timer = setImmediate(count);
  }
  await run();
  clearImmediate(timer);
  return turns;
}

/** Counts events in total, and in the turn with the most. */
export class TurnCounter {
  all = 0;
  fullest = 0;
  #inThisTurn = 0;

  readonly note = (): void => {
    if (this.#inThisTurn === 0) {
      setImmediate(() => {
        this.#inThisTurn = 0;
      });
    }
    this.all += 1;
    this.#inThisTurn += 1;
    this.fullest = Math.max(this.fullest, this.#inThisTurn);
  };
  readonly pass = passTurns;
}
