// Puts what was committed to the file of a database on the disk, at once or within a second. Source: ADR 312.

import { systemClock } from '../../domain/time/clock.ts';
import { SerialQueue } from '../../domain/time/serial-queue.ts';

/** Longest time from a commit that did not wait for the disk until the file is synchronized, in ms. */
const SOON_MS = 1_000;

/** Synchronizes one file, once at a time; all that is committed meanwhile shares the next time. */
export class FileSynchronization {
  readonly #synchronize: () => Promise<void>;
  readonly #onError: () => void;
  readonly #runs = new SerialQueue();
  /** The run that has not begun. */
  #next: Promise<void> | undefined;
  /** Why the next run fails: the disk reports an error once only, and it may concern what was committed since the run began. */
  #error: { readonly thrown: unknown } | undefined;
  #cancelAlarm: (() => void) | undefined;

  /** `onError`: what was committed is to be stored in another way. */
  constructor(synchronize: () => Promise<void>, onError: () => void) {
    this.#synchronize = synchronize;
    this.#onError = onError;
  }

  /** Resolves when all that was committed before is on the disk. Those that call while the disk is busy share its next run. */
  now(): Promise<void> {
    this.#next ??= this.#runs.take(() => this.#run());
    return this.#next;
  }

  soon(): void {
    this.#cancelAlarm ??= systemClock.background.alarm(SOON_MS, () => void this.now().catch(() => undefined));
  }

  async #run(): Promise<void> {
    const error = this.#error;
    this.#error = undefined;
    this.#next = undefined;
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    if (error !== undefined) throw error.thrown;
    try {
      await this.#synchronize();
    } catch (thrown) {
      if (this.#next !== undefined) this.#error = { thrown };
      this.#onError();
      throw thrown;
    }
  }
}
