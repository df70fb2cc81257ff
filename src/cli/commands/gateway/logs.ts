// `stagedoor gateway logs`: the last lines of the log of a background gateway, and with --follow new lines;
// `gateway log-level`: the log level of a running gateway.

import { type FileHandle, open } from 'node:fs/promises';
import { fileFault } from '../../../domain/errors/errors.ts';
import { jsonIn } from '../../../domain/json/json.ts';
import { DAEMON_OPTIONS, daemonFiles, runningDaemon } from '../../background/daemon-files.ts';
import { AGE_MS, type Command, type CommandInput, PAST_TIME, timeOf } from '../../command.ts';
import { CommandFailure, UsageError } from '../../failures.ts';
import { pause, untilSignal } from '../../foreground/stop-signals.ts';
import { printResult } from '../../output.ts';
import { fields } from '../../remote/answers.ts';
import { CLIENT_OPTIONS } from '../../remote/client-options.ts';
import { requireGateway } from '../../remote/find-gateway.ts';
import { readSettings } from '../../setting-options.ts';

const LINES = 100;
const MAX_LINES = 100_000;

/** The numbers of the levels in a record. */
const LEVELS: ReadonlyMap<string, number> = new Map([
  ['trace', 10],
  ['debug', 20],
  ['info', 30],
  ['warn', 40],
  ['error', 50],
  ['fatal', 60],
]);

export const gatewayLogs: Command = {
  name: 'gateway logs',
  summary: 'Show the log of a gateway in the background',
  options: {
    '-f, --follow': 'Keep printing new lines until Ctrl-C',
    '-n, --lines <number>': `Number of last lines to print first; default ${LINES}`,
    '--level <level>': `Only records of this level or a higher one: ${[...LEVELS.keys()].join(', ')}`,
    '--since <time>': `Only records of this time or later: ${PAST_TIME}`,
    '--json': 'Print the records as they are in the file; the default in a pipe',
    ...DAEMON_OPTIONS,
  },
  examples: ['gateway logs', 'gateway logs --level warn -f', 'gateway logs --since 2h --lines 1000 --json'],
  run: async (input, terminal) => {
    const files = await daemonFiles(readSettings(input, terminal), terminal);
    const isRaw = input.has('json') || terminal.columns === undefined;
    const readable = isRaw ? (line: string) => line : await lineReader();
    const print = (line: string) => terminal.print(readable(line));
    const isShown = filterOf(input);
    const count = input.number('lines', { minimum: 0, maximum: MAX_LINES }) ?? LINES;
    const file = await opened(files.log);
    // Without the right to test its lock it counts as running.
    if ((await runningDaemon(files).catch(() => files)) === undefined)
      terminal.note(`no gateway runs in the background here now: ${files.log} is the log of an earlier one`);
    try {
      const { size } = await file.stat();
      const written = await read(file, 0, size); // the whole file, which rotation bounds
      const mark = Buffer.from(written.subarray(-MARK_BYTES));
      for (const line of lastLines(written, count, isShown)) print(line);
      if (input.has('follow'))
        await untilSignal((signal) =>
          follow({ file, path: files.log, mark }, size, (line) => isShown(line) && print(line), signal),
        );
    } finally {
      await file.close();
    }
    return 0;
  },
};

/** Whether a line is shown. Lines of Node itself at a crash are not records, and always are. */
function filterOf(input: CommandInput): (line: string) => boolean {
  const [level, since] = [input.text('level'), input.text('since')];
  if (level === undefined && since === undefined) return () => true;
  const least = level === undefined ? 0 : LEVELS.get(level);
  if (least === undefined)
    throw new UsageError(`--level must be ${[...LEVELS.keys()].join(' or ')}, not "${level}"`);
  const from = since === undefined ? '' : timeOf('since', since, AGE_MS);
  return (line) => {
    const record = fields(jsonIn(line));
    return typeof record.level !== 'number' || (record.level >= least && String(record.time) >= from);
  };
}

/** The interval between reads of a followed log, in ms, and the most bytes of one read. */
const FOLLOW_MS = 200;
const PIECE_BYTES = 64 * 1024;
const LINE_END = 10;
/** The most bytes before the read position by which an old file is recognized. */
const MARK_BYTES = 1_024;

/**
 * Prints the lines that are written after `start`, those before a rotation, too. `path`: of the file; `mark`: its bytes before
 * `start`. A file that was made empty otherwise is read from its beginning.
 */
async function follow(
  { file, path, mark }: { readonly file: FileHandle; readonly path: string; readonly mark: Buffer },
  start: number,
  print: (line: string) => unknown,
  signal: AbortSignal,
): Promise<void> {
  let at = start;
  let before = mark;
  /** The pieces of a line whose end is still to be written. */
  let begun: Buffer[] = [];
  while (!signal.aborted) {
    const { size } = await file.stat();
    // One that was made empty may have grown beyond `at` since.
    const isOther = size < at || (size > at && !(await read(file, at - before.length, at)).equals(before));
    if (isOther) {
      const rest = await oldRest(`${path}.1`, at, before);
      if (rest === undefined) begun = [];
      else take(rest);
      at = 0;
      before = Buffer.alloc(0);
    }
    const piece = await read(file, at, Math.min(size, at + PIECE_BYTES));
    if (piece.length === 0) {
      await pause(FOLLOW_MS, signal);
      continue;
    }
    at += piece.length;
    before = Buffer.from(piece.subarray(-MARK_BYTES));
    take(piece);
  }

  function take(piece: Buffer): void {
    const end = piece.lastIndexOf(LINE_END);
    if (end >= 0) {
      const lines = Buffer.concat([...begun, piece.subarray(0, end)]).toString('utf8');
      for (const line of lines.split('\n')) print(line);
      begun = [];
    }
    begun.push(piece.subarray(end + 1));
  }
}

/** What the newest old file has after `at`; undefined if it is not a copy of the file before its rotation, with `mark` before `at`. */
async function oldRest(path: string, at: number, mark: Buffer): Promise<Buffer | undefined> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const from = at - mark.length;
    if (size < at || !(await read(file, from, at)).equals(mark)) return undefined;
    return await read(file, at, size);
  } finally {
    await file.close();
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (error) {
    throw new CommandFailure(
      `${path} cannot be read (${fileFault(error)}): has a gateway run in the background here?`,
      { cause: error },
    );
  }
}

function lastLines(written: Buffer, count: number, isShown: (line: string) => boolean): readonly string[] {
  const lines = written.toString('utf8').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return count === 0 ? [] : lines.filter(isShown).slice(-count);
}

async function read(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(to - from), 0, to - from, from);
  return buffer.subarray(0, bytesRead);
}

/** Formats records for reading; lines of Node itself at a crash are not records and stay unchanged. */
async function lineReader(): Promise<(line: string) => string> {
  const { humanLine } = await import('../../foreground/log.ts');
  return (line) => {
    try {
      return humanLine(line);
    } catch {
      return line;
    }
  };
}

export const gatewayLogLevel: Command = {
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
    return printResult(input, terminal, answer, String(fields(answer).level));
  },
};
