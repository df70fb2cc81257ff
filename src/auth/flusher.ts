// Write-behind for a buffer: soon, one write at a time, again after a failure. Its owner writes and handles failures (audit.ts,
// api-keys.ts).

import { withTimeout } from '../persistence/with-timeout.ts';

/** Longest wait of close() for a writing that is under way, in ms. */
const CLOSE_MS = 2_000;
/** Longest wait of a list for buffered entries, in ms: a database that is slow to write can still be read. */
const READ_MS = 1_000;

export class Flusher {
  readonly #delayMs: number;
  readonly #write: () => Promise<boolean>;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;
  /** The write that follows `#underWay`. */
  #next: Promise<void> | undefined;
  #isClosed = false;

  /** `write` writes everything there is, never rejects, and says whether something is left for later. */
  constructor(delayMs: number, write: () => Promise<boolean>) {
    this.#delayMs = delayMs;
    this.#write = write;
  }

  /** There is something to write: it happens after the delay at the latest. */
  later(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => void this.now(), this.#delayMs);
    this.#timer.unref();
  }

  /** Writes at once; behind a writing that is under way, which may not hold all there is. Never rejects. */
  now(): Promise<void> {
    if (this.#underWay === undefined) return this.#begin();
    // One for all calls during a write, or each of them would wait for the writes of the others.
    this.#next ??= this.#underWay.then(() => this.#begin());
    return this.#next;
  }

  /** As `now`, for a reader: resolves after 1 s at the latest. */
  beforeReading(): Promise<void> {
    return this.#nowWithin(READ_MS);
  }

  /** A last writing, bounded in time; nothing is written on its own afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#nowWithin(CLOSE_MS);
  }

  #nowWithin(ms: number): Promise<void> {
    return withTimeout(this.now(), ms).catch(() => undefined); // it continues in the background
  }

  #begin(): Promise<void> {
    this.#next = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#underWay = this.#writeOnce();
    return this.#underWay;
  }

  async #writeOnce(): Promise<void> {
    const isSomethingLeft = await this.#write();
    // Waiting callers have the promise of the next write, which begins in the same tick.
    if (this.#next === undefined) this.#underWay = undefined;
    if (isSomethingLeft) this.later();
  }
}
