// Puts the committed data of the file of a database on the disk, at once or within a second; and says whether it is still there.
// Source: ADR 312.

import { statSync } from 'node:fs';
import { systemClock } from '../../../domain/time/clock.ts';
import { SerialQueue } from '../../../domain/time/serial-queue.ts';

/** The longest time from a commit that did not wait for the disk until the file is synchronized, in ms. */
const SOON_MS = 1_000;

/** Synchronizes one file, in one run at a time; everything that is committed during a run shares the next run. */
export class FileSynchronization {
  readonly #synchronize: () => Promise<void>;
  readonly #onError: () => void;
  readonly #runs = new SerialQueue();
  /** The run that has not begun. */
  #next: Promise<void> | undefined;
  /**
   * The reason why the next run fails: the disk reports an error once only, and it may concern data that was
   * committed since the run began.
   */
  #error: { readonly thrown: unknown } | undefined;
  #cancelAlarm: (() => void) | undefined;

  /** `onError` is called when the committed data has to be stored in another way. */
  constructor(synchronize: () => Promise<void>, onError: () => void) {
    this.#synchronize = synchronize;
    this.#onError = onError;
  }

  /** Resolves when everything that was committed before is on the disk. Callers share the next run while the disk is busy. */
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

/**
 * Reads the identity of the file; the returned function is true while the path still names it. SQLite continues
 * to write to a file that was moved or deleted: changes would be acknowledged, and lost at the next start.
 */
export function fileIdentity(path: string): () => boolean {
  const opened = identityOf(path);
  return () => identityOf(path) === opened;
}

/**
 * The identity of a file; undefined without one. Synchronous, so that nothing happens between the check and the
 * statement; 3 us.
 */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}
