// Turns at work that holds the event loop: a few at a time, in order of arrival, and after a turn that took long
// none begins for a time in proportion to it.

import type { Clock } from '../../domain/time/clock.ts';

/** The rest after a turn, as a multiple of the time that it took. */
const RESTS = 4;

/** An asynchronous turn resolves with the time for which it held the event loop, in ms; one that rejects counts none. */
type Turn = (() => void) | (() => Promise<number>);

/** The queue of one kind of work that holds the event loop. */
export class Turns {
  readonly #clock: Clock;
  readonly #atOnce: number;
  readonly #waiting: Turn[] = [];
  #underWay = 0;
  #isResting = false;
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  /** `atOnce`: most asynchronous turns that are under way. */
  constructor(clock: Clock, atOnce = 1) {
    this.#clock = clock;
    this.#atOnce = atOnce;
  }

  run(turn: Turn): void {
    this.#waiting.push(turn);
    this.#next();
  }

  /** A loop, not a recursion: thousands may wait. A turn that calls `run` is in it already. */
  #next(): void {
    while (!this.#isResting && this.#underWay < this.#atOnce) {
      const turn = this.#waiting.shift();
      if (turn === undefined) return;
      this.#begin(turn);
    }
  }

  #begin(turn: Turn): void {
    const { now } = this.#clock;
    const beganAtMs = now();
    this.#underWay += 1;
    const end = (tookMs: number): void => {
      this.#underWay -= 1;
      this.#rest(RESTS * tookMs);
    };
    let lasts: ReturnType<Turn>;
    try {
      lasts = turn();
    } catch (thrown) {
      end(now() - beganAtMs);
      this.#clock.alarm(0, () => this.#next());
      throw thrown;
    }
    if (lasts === undefined) end(now() - beganAtMs);
    else
      void lasts
        .catch(() => 0)
        .then((tookMs) => {
          end(tookMs);
          this.#next();
        });
  }

  #rest(ms: number): void {
    const { now, alarm } = this.#clock;
    this.#restsUntilMs = Math.max(this.#restsUntilMs, now() + ms);
    const leftMs = this.#restsUntilMs - now();
    if (this.#isResting || leftMs <= 0) return;
    this.#isResting = true;
    alarm(leftMs, () => {
      this.#isResting = false;
      this.#rest(0); // it may have become longer
      this.#next();
    });
  }
}
