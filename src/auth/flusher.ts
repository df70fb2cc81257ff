// Write-behind for a buffer: after a delay, one write at a time, and again after a failure. The owner writes
// and handles failures (audit-log.ts, api-keys.ts).

import { type Clock, settlesWithin } from '../domain/time/clock.ts';
import { SerialQueue } from '../domain/time/serial-queue.ts';

/** The longest wait of close() for a running write, in ms. */
const CLOSE_MS = 2_000;
/** The longest wait of a list for buffered entries, in ms: a database with slow writes can still be read. */
const BEFORE_READING_MS = 1_000;

/** Decides when its owner writes; `close` has it write once more. */
export class Flusher {
  readonly #delayMs: number;
  readonly #write: () => Promise<boolean>;
  readonly #writes = new SerialQueue();
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;
  /** A write that has not begun. */
  #next: Promise<void> | undefined;
  #isClosed = false;

  /** `write` writes everything in the buffer, never rejects, and resolves with true when something is left. */
  constructor(delayMs: number, write: () => Promise<boolean>, clock: Clock) {
    this.#clock = clock;
    this.#delayMs = delayMs;
    this.#write = write;
  }

  /** Schedules a write, at the latest after the delay. */
  later(): void {
    if (this.#cancel !== undefined || this.#isClosed) return;
    this.#cancel = this.#clock.background.alarm(this.#delayMs, () => void this.now());
  }

  /** Writes at once, or after the running write, which may not contain everything. Never rejects. */
  now(): Promise<void> {
    // All calls during a write share the next one: otherwise each would wait for the writes of the others.
    this.#next ??= this.#writes.take(async () => {
      this.#next = undefined;
      this.#cancel?.();
      this.#cancel = undefined;
      if (await this.#write()) this.later();
    });
    return this.#next;
  }

  /** Writes the buffered entries before a read, waiting 1 s at most. */
  async beforeReading(): Promise<void> {
    await settlesWithin(this.now(), BEFORE_READING_MS, this.#clock);
  }

  /** A last write, bounded in time; the timer starts no more writes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await settlesWithin(this.now(), CLOSE_MS, this.#clock);
  }
}
