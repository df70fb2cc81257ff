// `stagedoor gateway logs`: the last lines of the log of a background gateway, and with --follow new lines;
// `gateway log-level`: the log level of a running gateway.

import { type FileHandle, open } from 'node:fs/promises';
import { codeOf, messageOf } from '../../domain/errors/errors.ts';
import { DAEMON_OPTIONS, daemonFiles } from '../background/daemon-files.ts';
import type { Command } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { pause, untilSignal } from '../foreground/stop-signals.ts';
import { printable, printResult } from '../output.ts';
import { fields } from '../remote/answers.ts';
import { CLIENT_OPTIONS, requireGateway } from '../remote/remote.ts';
import { readSettings } from '../setting-options.ts';

const LINES = 100;
const MAX_LINES = 100_000;

export const logs: Command = {
  name: 'gateway logs',
  summary: 'Show the log of a gateway in the background',
  options: {
    '-f, --follow': 'Keep printing new lines until Ctrl-C',
    '-n, --lines <number>': `Number of last lines to print first; default ${LINES}`,
    '--json': 'Print the records as they are in the file; the default in a pipe',
    ...DAEMON_OPTIONS,
  },
  examples: ['gateway logs', 'gateway logs -f', 'gateway logs --lines 1000 --json'],
  run: async (input, terminal) => {
    const { log } = await daemonFiles(readSettings(input, terminal), terminal);
    const isRaw = input.has('json') || terminal.columns === undefined;
    const readable = isRaw ? (line: string) => line : await lineReader();
    const print = (line: string) => terminal.print(readable(line));
    const count = input.number('lines', { minimum: 0, maximum: MAX_LINES }) ?? LINES;
    const file = await opened(log);
    try {
      const { size } = await file.stat();
      for (const line of await lastLines(file, size, count)) print(line);
      if (input.has('follow')) await untilSignal((signal) => follow(file, size, print, signal));
    } finally {
      await file.close();
    }
    return 0;
  },
};

/** The interval between reads of a followed log, in ms, and the most bytes of one read. */
const READ_MS = 200;
const PIECE_BYTES = 64 * 1024;
const LINE_END = 10;

/** Prints the lines that are written after `start`. */
async function follow(
  file: FileHandle,
  start: number,
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let [at, rest] = [start, Buffer.alloc(0)];
  while (!signal.aborted) {
    const { size } = await file.stat();
    // The file was rotated; lines added in between are in `gateway.log.1`.
    if (size < at) [at, rest] = [0, Buffer.alloc(0)];
    const piece = await read(file, at, Math.min(size, at + PIECE_BYTES));
    at += piece.length;
    rest = Buffer.concat([rest, piece]);
    const end = rest.lastIndexOf(LINE_END);
    if (end >= 0) for (const line of rest.toString('utf8', 0, end).split('\n')) print(line);
    rest = rest.subarray(end + 1);
    if (piece.length === 0) await pause(READ_MS, signal);
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (error) {
    const reason = codeOf(error) ?? messageOf(error);
    throw new CommandFailure(
      `${path} cannot be read (${reason}): has a gateway run in the background here?`,
      { cause: error },
    );
  }
}

/** Reads the whole file, which rotation bounds. */
async function lastLines(file: FileHandle, size: number, count: number): Promise<readonly string[]> {
  const lines = (await read(file, 0, size)).toString('utf8').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return count === 0 ? [] : lines.slice(-count);
}

async function read(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(to - from), 0, to - from, from);
  return buffer.subarray(0, bytesRead);
}

/** Formats records for reading; lines of Node itself at a crash are not records and stay unchanged. */
async function lineReader(): Promise<(line: string) => string> {
  const { humanLine } = await import('../foreground/log.ts');
  return (line) => {
    try {
      return humanLine(line);
    } catch {
      return line;
    }
  };
}

export const logLevel: Command = {
  name: 'gateway log-level',
  positionals: '[level]',
  summary: 'Show the log level, or change it until the next start',
  options: CLIENT_OPTIONS,
  examples: ['gateway log-level', 'gateway log-level debug'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const [level] = input.positionals;
    const change = level === undefined ? {} : ({ method: 'PATCH', body: { level } } as const);
    const answer = await gateway.request('/gateway/log-level', change);
    return printResult(input, terminal, answer, printable(String(fields(answer).level)));
  },
};
