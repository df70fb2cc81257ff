// What happens in one turn of the event loop: a pace whose turns depend on no clock, and how much happened in the fullest turn.

import { setImmediate as immediate } from 'node:timers/promises';
import { LIMITS } from '../../src/domain/limits.ts';
import { TaskScheduler } from '../../src/domain/task-scheduler.ts';

/** By number alone: how fast the machine is makes no difference. */
export function steadyPace(perTurn: number = LIMITS.paceTasks): TaskScheduler {
  return new TaskScheduler({ perTurn, turnMs: Number.POSITIVE_INFINITY });
}

/** Lets so many turns go by. */
export async function turnsPass(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await immediate();
}

/** Counts what is noted, in all and in the fullest turn. */
export class Turns {
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
  readonly pass = turnsPass;
}
