// Where the log of `gateway start` goes: standard error, since standard output is for what the command says. JSON lines
// (pino) for programs; one short line per record when a person watches in a terminal. Getting them there is log-sink.ts.

import type { Logger } from 'pino';
import { pino } from 'pino';
import { withoutUnseen } from '../domain/text.ts';
import { LogSink } from './log-sink.ts';

/**
 * Makes the log at a level of pino. It never fails and never waits: lines that nobody takes are dropped. `write`: see
 * LogSinkOptions.
 */
export function createLog(
  level: string,
  isForPeople = process.stderr.isTTY === true,
  write?: (bytes: Uint8Array) => number,
): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  // A terminal is written to at once and through its stream, which knows its encoding; its errors end in terminal.ts.
  if (isForPeople) {
    return pino(options, { write: (line: string) => void process.stderr.write(`${humanLine(line)}\n`) });
  }
  // Asking for `process.stderr`, as above, has made a pipe one that says "no room" instead of blocking its writer.
  const sink = new LogSink({ notice: droppedLine, ...(write === undefined ? {} : { write }) });
  process.once('exit', () => sink.close());
  return pino(options, sink);
}

/** The record that tells how many lines were lost. */
export function droppedLine(dropped: number): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ level: pino.levels.values.warn, time, dropped, msg: 'log lines were dropped' })}\n`;
}

/** One record as a person reads it: `06:03:12 warn  instance is unhealthy  template=everything reason="exited"`. */
export function humanLine(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 19);
  const word = pino.levels.labels[Number(level)] ?? 'info';
  const { err, ...fields } = rest;
  const details = Object.entries(fields).map(([name, value]) => `${name}=${inline(value)}`);
  const stack = err === undefined ? [] : [`\n${stackOf(err)}`];
  return withoutUnseen(
    [`${clock} ${word.padEnd(5)} ${String(msg ?? '')}`, ...details].join('  ') + stack.join(''),
  );
}

function inline(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /[\s"]/.test(text) && typeof value === 'string' ? JSON.stringify(text) : text;
}

function stackOf(error: unknown): string {
  const { stack, message } = Object(error) as Record<string, unknown>;
  return String(stack ?? message ?? error);
}
