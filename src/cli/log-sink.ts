// Takes the lines of the log and gets them to a file descriptor without ever making the gateway wait: lines are collected
// and written together, and those that cannot be written are dropped and counted. What a line says is log.ts.

import { writeSync } from 'node:fs';

/** Characters that are collected before they are written: one system call for many lines, and little to lose. */
const COLLECTED_CHARACTERS = 16 * 1024;
/** Longest time a line is kept back, in ms; also how often a reader that does not read is tried again. */
const FLUSH_MS = 100;
/** Most that is kept for a reader that does not read: bytes that were tried, and characters that were not yet. */
const LONGEST_BACKLOG = 1024 * 1024;
/** Longest wait at the end of the process for such a reader, and the pause between two tries, in ms. */
const LAST_WAIT_MS = 200;
const LAST_PAUSE_MS = 5;
const LINE_END = 10;

/** The outside world; replaced in specs. */
export interface LogSinkOptions {
  /** Writes some of the bytes, returns how many; throws EAGAIN when there is no room now. Default: standard error. */
  readonly write?: (bytes: Uint8Array) => number;
  /** The line that tells how many were dropped, with its line end. */
  readonly notice: (dropped: number) => string;
}

/** A destination for pino. Has a timer only while lines wait, and that one keeps no process alive. */
export class LogSink {
  readonly #write: (bytes: Uint8Array) => number;
  readonly #notice: (dropped: number) => string;
  /** Lines that nobody tried to write yet. */
  #collected = '';
  /** What is left of the bytes that were tried last. */
  #unsent: Uint8Array = new Uint8Array();
  #dropped = 0;
  /** How many dropped lines the notice tells that is at the front of `#unsent`. */
  #announced = 0;
  /** The reader has read half a line, and the other half is lost. */
  #isTorn = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ write = (bytes) => writeSync(2, bytes), notice }: LogSinkOptions) {
    this.#write = write;
    this.#notice = notice;
  }

  /** Takes one line, with its line end. */
  write(line: string): void {
    if (this.#collected.length + this.#unsent.length >= LONGEST_BACKLOG) this.#dropped += 1;
    else this.#collected += line;
    // While bytes are unsent only the timer tries again: trying at every line would cost what collecting saves.
    if (this.#unsent.length === 0 && this.#collected.length >= COLLECTED_CHARACTERS) this.flushSync();
    else this.#timer ??= this.#later();
  }

  /** Writes what there is as far as there is room. pino calls it after a fatal record. Never throws. */
  flushSync(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#unsent.length > 0 || this.#encode()) {
      try {
        const written = this.#write(this.#unsent);
        this.#isTorn = this.#unsent[written - 1] !== LINE_END;
        this.#unsent = this.#unsent.subarray(written);
        this.#announced = 0;
      } catch (error) {
        // A reader that is behind is tried again. Whatever else it is (no space, a closed terminal), there is nobody
        // left to tell, and the next lines find out by themselves when it is over.
        if (isBusy(error)) this.#timer = this.#later();
        else this.#drop();
        return;
      }
    }
  }

  /** For the end of the process: waits a moment for a reader that is behind. */
  close(): void {
    this.flushSync();
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let waitedMs = 0; this.#unsent.length > 0 && waitedMs < LAST_WAIT_MS; waitedMs += LAST_PAUSE_MS) {
      Atomics.wait(pause, 0, 0, LAST_PAUSE_MS);
      this.flushSync();
    }
    clearTimeout(this.#timer);
  }

  /** Makes bytes of all that was collected; false when there is nothing. */
  #encode(): boolean {
    if (this.#collected === '') return false;
    const start = this.#isTorn ? '\n' : '';
    const notice = this.#dropped > 0 ? this.#notice(this.#dropped) : '';
    this.#unsent = Buffer.from(start + notice + this.#collected);
    this.#collected = '';
    this.#announced = this.#dropped;
    this.#dropped = 0;
    return true;
  }

  #drop(): void {
    const lines = this.#unsent.reduce((count, byte) => count + (byte === LINE_END ? 1 : 0), 0);
    // The notice is a line of ours, and what it told is still to be told.
    this.#dropped += lines + (this.#announced > 0 ? this.#announced - 1 : 0);
    this.#announced = 0;
    this.#unsent = this.#unsent.subarray(this.#unsent.length);
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => this.flushSync(), FLUSH_MS).unref();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EINTR');
}
