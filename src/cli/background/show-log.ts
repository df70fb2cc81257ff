// Reads the log of a gateway in the background for a person: the last lines, and those that are added.

import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailure } from '../failures.ts';
import { humanLine } from '../log.ts';
import { untilSignal } from '../stop-signals.ts';
import type { Terminal } from '../terminal.ts';
import type { DaemonFiles } from './daemon-files.ts';

export interface ShowOptions {
  /** How many of the last lines. */
  readonly lines: number;
  /** Whether it goes on with new ones until a signal ends it. */
  readonly isFollowed: boolean;
  /** Whether lines are printed as they are in the file. */
  readonly isRaw: boolean;
  /** Ends following. Default: SIGINT and SIGTERM. */
  readonly signal?: AbortSignal;
}

/** How often a followed log is looked at, in ms, and how much is read at once, in bytes. */
const LOOK_MS = 200;
const PIECE_BYTES = 64 * 1024;
const LINE_END = 10;

/** Throws CommandFailure when there is no log. */
export async function showLog({ log }: DaemonFiles, terminal: Terminal, options: ShowOptions): Promise<void> {
  const print = (line: string): void => terminal.print(options.isRaw ? line : readable(line));
  const file = await opened(log);
  try {
    let { size: at } = await file.stat();
    for (const line of await lastLines(file, at, options.lines)) print(line);
    if (!options.isFollowed) return;
    const signal = options.signal ?? untilSignal();
    let rest = Buffer.alloc(0);
    while (!signal.aborted) {
      const { size } = await file.stat();
      // It was set aside; what was added in between is in `gateway.log.1`.
      if (size < at) [at, rest] = [0, Buffer.alloc(0)];
      const piece = await read(file, at, Math.min(size, at + PIECE_BYTES));
      at += piece.length;
      rest = Buffer.concat([rest, piece]);
      const end = rest.lastIndexOf(LINE_END);
      if (end >= 0) for (const line of rest.toString('utf8', 0, end).split('\n')) print(line);
      rest = rest.subarray(end + 1);
      // Rejects when it is to end.
      if (piece.length === 0) await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await file.close();
  }
}

async function opened(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw new CommandFailure(
      isMissing
        ? `there is no log of a gateway in the background: ${path}`
        : `${path} cannot be read: ${error}`,
      { cause: error },
    );
  }
}

/** Read from the end, piece by piece, until there are enough. */
async function lastLines(file: FileHandle, size: number, count: number): Promise<readonly string[]> {
  let start = size;
  const pieces: Buffer[] = [];
  let ends = 0;
  while (start > 0 && ends <= count) {
    const from = Math.max(0, start - PIECE_BYTES);
    const piece = await read(file, from, start);
    for (const byte of piece) if (byte === LINE_END) ends += 1;
    pieces.unshift(piece);
    start = from;
  }
  const lines = Buffer.concat(pieces).toString('utf8').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return count === 0 ? [] : lines.slice(-count);
}

async function read(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(to - from), 0, to - from, from);
  return buffer.subarray(0, bytesRead);
}

/** What Node itself says in a crash is no record. */
function readable(line: string): string {
  try {
    return humanLine(line);
  } catch {
    return line;
  }
}
