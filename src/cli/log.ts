// The log of `gateway start` goes to standard error, since standard output is for the output of the command. JSON lines
// (pino) for programs; one short line per record when a person watches in a terminal. The gateway never waits for the log:
// lines are collected and written together, and those that cannot be written are dropped and counted.

import { writeSync } from 'node:fs';
import type { Logger, LoggerOptions } from 'pino';
import { pino } from 'pino';
import { isoTimes } from '../domain/clock.ts';
import { withoutInvisible } from '../domain/text.ts';
import { fieldText } from './output.ts';

/**
 * Makes the log at a level of pino. It never fails and never waits: lines that no reader takes are dropped. `write`: see LogSink.
 */
export function createLog(
  level: string,
  isForPeople = process.stderr.isTTY === true,
  write?: (bytes: Uint8Array) => number,
): Logger {
  const isoTime = isoTimes();
  const options = { level, base: null, timestamp: () => `,"time":"${isoTime(Date.now())}"` };
  // A terminal is written to at once and through its stream, which knows its encoding; its errors end in terminal.ts.
  if (isForPeople) {
    return pino(options, { write: (line: string) => void process.stderr.write(`${humanLine(line)}\n`) });
  }
  // The use of `process.stderr` above has made a pipe non-blocking: a write to a full one fails.
  const sink = new LogSink(write);
  process.once('exit', () => sink.close());
  return pino({ ...options, hooks: { logMethod: writesFields(sink, isoTime) } }, sink);
}

/**
 * Writes records with fields as pino does, for half of the time and with little garbage: each request has one. The rest is left to
 * pino. The log has no bindings, serializers or redaction that would count here.
 */
function writesFields(sink: LogSink, isoTime: (atMs: number) => string): LogMethod {
  return function (args, method, level) {
    const [fields, message, ...more]: unknown[] = args;
    const text =
      level === INFO && typeof message === 'string' && more.length === 0 ? jsonOf(fields) : undefined;
    if (text === undefined) return method.apply(this, args);
    const head = `{"level":${INFO},"time":"${isoTime(Date.now())}",`;
    return sink.write(`${head}${text.slice(1, -1)},"msg":${JSON.stringify(message)}}\n`);
  };
}

type LogMethod = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>;

const INFO = pino.levels.values.info;

/** Undefined for anything but an object with fields, and for errors, which pino has a form for. */
function jsonOf(fields: unknown): string | undefined {
  if (typeof fields !== 'object' || fields === null || 'err' in fields || fields instanceof Error)
    return undefined;
  try {
    const text: string | undefined = JSON.stringify(fields);
    return text?.startsWith('{"') ? text : undefined;
  } catch {
    return undefined; // a cycle
  }
}

function droppedLine(dropped: number): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ level: pino.levels.values.warn, time, dropped, msg: 'log lines were dropped' })}\n`;
}

/** One record for a person: `06:03:12 warn  instance is unhealthy  template=everything reason="exited"`. */
export function humanLine(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 19);
  const word = pino.levels.labels[Number(level)] ?? 'info';
  const { err, ...fields } = rest;
  const details = Object.entries(fields).map(([name, value]) => `${name}=${fieldText(value)}`);
  const stack = err === undefined ? [] : [`\n${stackOf(err)}`];
  return withoutInvisible(
    [`${clock} ${word.padEnd(5)} ${String(msg ?? '')}`, ...details].join('  ') + stack.join(''),
  );
}

function stackOf(error: unknown): string {
  const { stack, message } = Object(error) as Record<string, unknown>;
  return String(stack ?? message ?? error);
}

// --- the sink ------------------------------------------------------------------------------------------------------

/** Characters that are collected before they are written: one system call for many lines, and little to lose. */
const COLLECTED_CHARACTERS = 16 * 1024;
/** Longest time a line waits to be written, in ms; also the interval of retries while the reader does not read. */
const FLUSH_MS = 100;
/** Most that is kept while the reader does not read: bytes that were tried, and characters that were not yet. */
const LONGEST_BACKLOG = 1024 * 1024;
/** Longest wait at the end of the process for such a reader, and the pause between two attempts, in ms. */
const LAST_WAIT_MS = 200;
const LAST_PAUSE_MS = 5;
const LINE_END = 10;

/** Bytes that are being written: the sink's own notice, if any, then lines. */
interface Batch {
  readonly bytes: Uint8Array;
  /** How many of the bytes are the sink's own: the end of a torn line, and the notice. */
  readonly ownBytes: number;
  readonly reported: number;
  at: number;
}

const NOTHING: Batch = { bytes: new Uint8Array(), ownBytes: 0, reported: 0, at: 0 };

/** A destination for pino. Has a timer only while lines wait, and the timer keeps no process alive. */
export class LogSink {
  readonly #write: (bytes: Uint8Array) => number;
  readonly #notice: (dropped: number) => string;
  /** Lines that were not tried yet. */
  #collected = '';
  #batch = NOTHING;
  #dropped = 0;
  /** The reader got half a line, and the other half is lost. */
  #isTorn = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `write` writes some of the bytes and returns how many; it throws EAGAIN when there is no room now. `notice` makes the line, with
   * its end, with the number of dropped lines.
   */
  constructor(
    write: (bytes: Uint8Array) => number = (bytes) => writeSync(2, bytes),
    notice: (dropped: number) => string = droppedLine,
  ) {
    this.#write = write;
    this.#notice = notice;
  }

  write(line: string): void {
    if (this.#collected.length + this.#unsent >= LONGEST_BACKLOG) this.#dropped += 1;
    else this.#collected += line;
    // While bytes are unsent only the timer tries again: trying at every line would cost what collecting saves.
    if (this.#unsent === 0 && this.#collected.length >= COLLECTED_CHARACTERS) this.flushSync();
    else this.#timer ??= this.#later();
  }

  /** Writes the waiting bytes for which there is room. pino calls it after a fatal record. Never throws. */
  flushSync(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#unsent > 0 || this.#encode()) {
      try {
        const { bytes, at } = this.#batch;
        const written = this.#write(bytes.subarray(at));
        this.#batch.at += written;
        if (written === 0) {
          this.#timer = this.#later();
          return;
        }
      } catch (error) {
        // A reader that is behind is tried again. Any other failure (no space, a closed terminal) can be reported nowhere;
        // the next lines find out when it is over.
        if (isBusy(error)) this.#timer = this.#later();
        else this.#drop();
        return;
      }
    }
  }

  /** At the end of the process: waits a moment for a reader that is behind. */
  close(): void {
    this.flushSync();
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let waitedMs = 0; this.#unsent > 0 && waitedMs < LAST_WAIT_MS; waitedMs += LAST_PAUSE_MS) {
      Atomics.wait(pause, 0, 0, LAST_PAUSE_MS);
      this.flushSync();
    }
    clearTimeout(this.#timer);
  }

  get #unsent(): number {
    return this.#batch.bytes.length - this.#batch.at;
  }

  /** Makes a batch of all that was collected, after the end of a torn line and the notice, if they are due; false for none. */
  #encode(): boolean {
    const reported = this.#dropped;
    const own = (this.#isTorn ? '\n' : '') + (reported > 0 ? this.#notice(reported) : '');
    const bytes = Buffer.from(own + this.#collected);
    if (bytes.length === 0) return false;
    this.#batch = { bytes, ownBytes: Buffer.byteLength(own), reported, at: 0 };
    this.#collected = '';
    this.#dropped = 0;
    this.#isTorn = false;
    return true;
  }

  /** Drops the rest of the batch: lines that were not completely written are lost, and so is an unfinished notice. */
  #drop(): void {
    const { bytes, ownBytes, reported, at } = this.#batch;
    // A line of which only the end is missing gets it by the repair.
    const kept = at > 0 && bytes[at] === LINE_END ? at + 1 : at;
    const lost = bytes.subarray(Math.max(kept, ownBytes));
    this.#dropped += lost.reduce((count, byte) => count + (byte === LINE_END ? 1 : 0), 0);
    if (kept < ownBytes) this.#dropped += reported;
    // Also when nothing was written of a batch that was to repair a torn line.
    this.#isTorn = at === 0 ? bytes[0] === LINE_END : bytes[at - 1] !== LINE_END;
    this.#batch = NOTHING;
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => this.flushSync(), FLUSH_MS).unref();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EINTR');
}
