// A value made of files that are renewed while the program runs, such as certificates. Source: ADR 190, 209.

import { reasonOf } from '../../domain/errors/errors.ts';
import type { Clock } from '../../domain/time/clock.ts';

export interface Renewed<T> {
  /** The latest value that could be read. */
  present(): T;
  /** Calls back after each change. */
  onChange(listener: () => void): void;
  /** Reads no more. */
  close(): void;
}

interface RenewedOptions<T> {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly isSame: (a: T, b: T) => boolean;
  /** Gets the reason once when the value cannot be read again; the previous one stays in use. */
  readonly onWarning: (reason: string) => void;
}

/** Reads at once, then at intervals. Throws the error of the first reading. */
export async function readRenewed<T>(
  read: () => Promise<T>,
  { clock, everyMs, isSame, onWarning }: RenewedOptions<T>,
): Promise<Renewed<T>> {
  let present = await read();
  const listeners: (() => void)[] = [];
  let lastReason = '';
  let isReading = false;
  const readAgain = async (): Promise<void> => {
    // Each reading of a file system that does not answer holds one of the few threads of the process.
    if (isReading) return;
    isReading = true;
    try {
      const next = await read();
      lastReason = '';
      if (isSame(next, present)) return;
      present = next;
      for (const listener of listeners) listener();
    } catch (thrown) {
      const reason = reasonOf(thrown);
      if (reason !== lastReason) onWarning(reason);
      lastReason = reason;
    } finally {
      isReading = false;
    }
  };
  const close = clock.background.every(everyMs, () => void readAgain());
  return { present: () => present, onChange: (listener) => listeners.push(listener), close };
}
