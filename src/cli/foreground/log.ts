// The log of `gateway start`, on standard error: JSON lines (pino), or one short line per record in a terminal. The gateway never
// waits for it: lines are collected and written together; without room, further lines are dropped and counted.

import { writeSync } from 'node:fs';
import { type Logger, type LoggerOptions, pino } from 'pino';
import { withoutInvisible } from '../../domain/text.ts';
import { isoTimes, pauseSync } from '../../domain/time/clock.ts';
import { fieldText } from '../output.ts';

/** The log at a pino level. `write`: see LogSink. `worker`: the number of this worker, in every line. */
export function createLog(
  level: string,
  isForPeople = process.stderr.isTTY === true,
  write?: (bytes: Uint8Array) => number,
  worker?: number,
): Logger {
  const isoTime = isoTimes();
  const base = worker === undefined ? null : { worker };
  const options = { level, base, timestamp: () => `,"time":"${isoTime(Date.now())}"` };
  // A terminal is written to at once and through its stream, which knows its encoding; terminal.ts handles its errors.
  if (isForPeople) {
    return pino(options, { write: (line: string) => void process.stderr.write(`${humanLine(line)}\n`) });
  }
  // The use of `process.stderr` above has made a pipe non-blocking: a write to a full one fails.
  const sink = new LogSink(write, base);
  process.once('exit', () => sink.close());
  return pino({ ...options, hooks: { logMethod: writesFields(sink, isoTime, worker) } }, sink);
}

/**
 * Writes records with fields like pino, in half the time and with little garbage: each request has such a record.
 * pino writes all others. The log has no other bindings, serializers or redaction that this would bypass.
 */
function writesFields(
  sink: LogSink,
  isoTime: (atMs: number) => string,
  worker: number | undefined,
): NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']> {
  const bound = worker === undefined ? '' : `"worker":${worker},`;
  return function (args, method, level) {
    const message: unknown = args[1];
    const isPlain = level === INFO && typeof message === 'string' && args.length === 2;
    const text = isPlain ? jsonOf(args[0]) : undefined;
    if (text === undefined) return method.apply(this, args);
    const head = `{"level":${INFO},"time":"${isoTime(Date.now())}",${bound}`;
    return sink.write(`${head}${text.slice(1, -1)},"msg":${JSON.stringify(message)}}\n`);
  };
}

const INFO = pino.levels.values.info;

/** The JSON of an object with fields; undefined for anything else, and for errors, which pino formats. */
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

function droppedLine(dropped: number, base: object | null): string {
  const head = { level: pino.levels.values.warn, time: new Date().toISOString(), ...base };
  return `${JSON.stringify({ ...head, dropped, msg: 'log lines were dropped' })}\n`;
}

/** One record for a person: `06:03:12 warn  instance is unhealthy  template=everything reason="exited"`. */
export function humanLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 19);
  const word = pino.levels.labels[Number(level)] ?? 'info';
  const details = Object.entries(fields).map(([name, value]) => `${name}=${fieldText(value)}`);
  const { stack, message } = Object(err) as Record<string, unknown>;
  const trace = err === undefined ? '' : `\n${stack ?? message ?? err}`;
  return withoutInvisible([`${clock} ${word.padEnd(5)} ${String(msg ?? '')}`, ...details].join('  ') + trace);
}

// --- the sink ----------------------------------------------------------------------------------------------

/** The number of characters that are collected before they are written: one system call for many lines, and little to lose. */
const COLLECTED_CHARACTERS = 16 * 1024;
/** The longest time for which a line waits to be written, in ms; also the interval of retries while nothing can be written. */
const FLUSH_MS = 100;
/** The most unwritten bytes and collected characters, together, that are kept while nothing can be written. */
const MAX_BACKLOG = 1024 * 1024;
/** The longest wait at the end of the process until everything is written, and the pause between two attempts, in ms. */
const LAST_LINES_MS = 200;
const LAST_PAUSE_MS = 5;

/** A destination for pino. It has a timer only while lines wait, and the timer keeps no process alive. */
export class LogSink {
  readonly #write: (bytes: Uint8Array) => number;
  readonly #base: object | null;
  /** Lines of which no write has begun. */
  #collected = '';
  /** The part of the last write that is not written yet. */
  #unsent: Uint8Array = new Uint8Array();
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `write` writes some of the bytes and returns their number; it throws EAGAIN when there is no room now. `base`: the fields
   * that every line has.
   */
  constructor(
    write: (bytes: Uint8Array) => number = (bytes) => writeSync(2, bytes),
    base: object | null = null,
  ) {
    this.#write = write;
    this.#base = base;
  }

  write(line: string): void {
    if (this.#collected.length + this.#unsent.length >= MAX_BACKLOG) this.#dropped += 1;
    else this.#collected += line;
    // While bytes are unsent, only the timer tries again: an attempt for each line would cost what collecting saves.
    if (this.#unsent.length === 0 && this.#collected.length >= COLLECTED_CHARACTERS) this.flushSync();
    else this.#timer ??= this.#later();
  }

  /** Writes as many waiting bytes as there is room for. pino calls it after a fatal record. Never throws. */
  flushSync(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#unsent.length > 0 || this.#encode()) {
      const written = this.#taken();
      this.#unsent = this.#unsent.subarray(written);
      if (written > 0) continue;
      this.#timer = this.#later();
      return;
    }
  }

  /** Writes what is left at the end of the process. Waits briefly for a slow reader. */
  close(): void {
    this.flushSync();
    for (let waitedMs = 0; this.#unsent.length > 0 && waitedMs < LAST_LINES_MS; waitedMs += LAST_PAUSE_MS) {
      pauseSync(LAST_PAUSE_MS);
      this.flushSync();
    }
    clearTimeout(this.#timer);
  }

  /** The number of bytes that were written. */
  #taken(): number {
    try {
      return this.#write(this.#unsent);
    } catch {
      return 0; // a slow reader, no space or a closed terminal: it cannot be reported, and may pass
    }
  }

  /** Makes bytes of all collected lines, after the notice about dropped lines, if any; false for none. */
  #encode(): boolean {
    const notice = this.#dropped > 0 ? droppedLine(this.#dropped, this.#base) : '';
    this.#unsent = Buffer.from(notice + this.#collected);
    this.#collected = '';
    this.#dropped = 0;
    return this.#unsent.length > 0;
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => this.flushSync(), FLUSH_MS).unref();
  }
}
