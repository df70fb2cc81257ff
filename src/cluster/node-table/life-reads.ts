// The reads of the table of lives: one at a time, and at most one a second because of requests. No read rejects.

import { type Clock, sleep } from '../../domain/time/clock.ts';

/** The shortest time between two reads that requests cause, in ms. */
const SOON_MS = 1_000;

/** Runs the reads of the table of lives, and knows whether the last one succeeded. */
export class LifeReads {
  readonly #clock: Clock;
  readonly #read: () => Promise<(() => void) | undefined>;
  #underWay: Promise<void> | undefined;
  #atMs = Number.NEGATIVE_INFINITY;
  /** True when the last read did not fail. */
  isCurrent = false;

  /**
   * `read`: resolves with a function that takes over the rows, called when they count as current; undefined when the read fails.
   */
  constructor(clock: Clock, read: () => Promise<(() => void) | undefined>) {
    this.#clock = clock;
    this.#read = read;
  }

  /** Reads the table; joins the read that is under way, if there is one. */
  now(): Promise<void> {
    this.#underWay ??= this.#readNow().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  /** Reads the table, beginning after this call. */
  async again(): Promise<void> {
    await this.#underWay;
    await this.now();
  }

  /** Reads the table as `now` does, unless a read ended less than a second ago. */
  async unlessRecent(): Promise<void> {
    if (this.#clock.now() - this.#atMs >= SOON_MS) await this.now();
  }

  /** Reads the table as `again` does, a second after the end of the read before. */
  async soon(): Promise<void> {
    await this.#underWay;
    await sleep(this.#clock, Math.max(0, this.#atMs + SOON_MS - this.#clock.now()));
    await this.unlessRecent();
  }

  async #readNow(): Promise<void> {
    const takeOver = await this.#read();
    this.isCurrent = takeOver !== undefined;
    if (this.isCurrent) this.#atMs = this.#clock.now();
    takeOver?.();
  }
}
