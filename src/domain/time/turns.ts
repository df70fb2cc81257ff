// Turns at work that holds the event loop: one at a time, in order of arrival, and after a turn that took long
// nothing for a time in proportion to it.

import type { Clock } from './clock.ts';

/** After a turn there is none for this many times as long as it took. */
const RESTS = 4;

type Turn = () => void | Promise<void>;

export class Turns {
  readonly #clock: Pick<Clock, 'now' | 'alarm'>;
  readonly #briefMs: number;
  readonly #waiting: Turn[] = [];
  #isTaken = false;

  /** The next turn follows one of less than `briefMs` at once. */
  constructor(clock: Pick<Clock, 'now' | 'alarm'>, briefMs = 0) {
    this.#clock = clock;
    this.#briefMs = briefMs;
  }

  /** A turn that is asynchronous lasts until it has settled. */
  run(turn: Turn): void {
    this.#waiting.push(turn);
    if (!this.#isTaken) this.#next();
  }

  #next(): void {
    const turn = this.#waiting.shift();
    this.#isTaken = turn !== undefined;
    if (turn === undefined) return;
    const { now, alarm } = this.#clock;
    const beganAtMs = now();
    const end = (): void => {
      const tookMs = now() - beganAtMs;
      if (tookMs < this.#briefMs) this.#next();
      else alarm(RESTS * tookMs, () => this.#next());
    };
    try {
      const lasts = turn();
      if (lasts !== undefined) {
        void lasts.finally(end);
        return;
      }
    } catch (thrown) {
      end();
      throw thrown;
    }
    end();
  }
}
