// Reads the files that users name. A file may also be a pipe, such as that of `<(command)` in a shell, or a terminal, to
// whose end a reader waits for a minute at most; of devices only the empty one. Certificates and their keys may not. Files
// of settings are read at once, because settings are read before anything runs; larger ones in pieces.

import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { devNull } from 'node:os';
import { isatty } from 'node:tty';
import { codeOf, OperatorError } from '../domain/errors/errors.ts';
import { pauseSync, sleep, systemClock } from '../domain/time/clock.ts';

const PIECE_BYTES = 65_536;
const MAX_FILE_BYTES = 16 * 2 ** 20;
/** The most bytes of a file of certificates: a chain has some KiB. */
const MAX_PEM_BYTES = 2 ** 20;
/** The flags of opening; O_NONBLOCK, because opening a pipe would wait for a writer. */
const AT_ONCE = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
/** The pause between two looks into a pipe whose program has not written yet, in ms. */
const PAUSE_MS = 5;
const NO_FILE = 'not a file or a pipe';
/** The longest wait for a program that opens the other end of a pipe, in ms. */
const WRITER_MS = 5_000;
/** What a program writes into a pipe, or a user into a terminal, is read for this long. */
const END_MS = 60_000;

/**
 * Throws the error of the file system, or one whose code says what is wrong: `no writer` for a pipe that no program has opened
 * for writing after 5 s, `no end within 60 s`, `not a file or a pipe`, or `too long`.
 */
export function readFileNow(path: string, endMs = END_MS): Buffer {
  const fd = openSync(path, AT_ONCE);
  try {
    return wholeNow(piecesOf(fd, fstatSync(fd), endMs));
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads at once a file that the program itself has written: a pipe would let it wait. Throws the error of the file system, or
 * one with the code `not a file` or `too long`.
 */
export function readRegularFile(path: string): Buffer {
  const fd = openSync(path, AT_ONCE);
  try {
    const stats = fstatSync(fd);
    if (isWrittenLater(fd, stats)) throw coded('not a file');
    return wholeNow(piecesOf(fd, stats, 0));
  } finally {
    closeSync(fd);
  }
}

/** Throws as `readFileNow`, but reads what has no end until the reader leaves. */
export async function* filePieces(path: string, endMs = END_MS): AsyncGenerator<Uint8Array> {
  const fd = openSync(path, AT_ONCE);
  const stats = fstatSync(fd);
  if (stats.isFile()) {
    yield* createReadStream(path, { fd });
    return;
  }
  try {
    for (const piece of piecesOf(fd, stats, endMs))
      if (piece === undefined) await sleep(systemClock, PAUSE_MS);
      else yield piece;
  } finally {
    closeSync(fd);
  }
}

/**
 * The text of a file that is read again while the gateway runs; not a pipe, which has its text only once. Throws
 * the error of the file system, or OperatorError.
 */
export async function readPemFile(path: string, check?: (stats: Stats) => void): Promise<string> {
  const file = await open(path, AT_ONCE);
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_PEM_BYTES) throw new OperatorError('it is not a file in PEM');
    check?.(stats);
    const content = await contentUpTo(MAX_PEM_BYTES, file);
    if (content === undefined) throw new OperatorError('it is not a file in PEM');
    return content.toString('utf8');
  } finally {
    await file.close();
  }
}

/** The content of a file; undefined for a longer file. Files of the system have the size 0, whatever they contain. */
export async function contentUpTo(mostBytes: number, file: FileHandle): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  for (let bytes = 0; bytes <= mostBytes; ) {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(PIECE_BYTES));
    if (bytesRead === 0) return Buffer.concat(pieces);
    pieces.push(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
  }
  return undefined;
}

function wholeNow(read: Iterable<Buffer | undefined>): Buffer {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (const piece of read) {
    if (piece === undefined) pauseSync(PAUSE_MS);
    else pieces.push(piece);
    bytes += piece?.length ?? 0;
    if (bytes > MAX_FILE_BYTES) throw coded('too long');
  }
  return Buffer.concat(pieces);
}

/** All pieces; undefined where the rest is written later, after which the reader pauses. */
function* piecesOf(fd: number, stats: Stats, endMs: number): Generator<Buffer | undefined> {
  const mayWait = isWrittenLater(fd, stats);
  if (!mayWait && !stats.isFile() && !stats.isDirectory() && !isEmptyDevice(stats)) throw coded(NO_FILE);
  const startMs = systemClock.now();
  for (let hasWriter = !stats.isFIFO(); ; ) {
    const piece = pieceNow(fd);
    if (piece?.length === 0 && hasWriter) return;
    hasWriter ||= piece?.length !== 0;
    if (piece !== undefined && piece.length > 0) {
      yield piece;
      continue;
    }
    // Of the files of the system, some wait for what is to happen.
    if (!mayWait) throw coded(NO_FILE);
    const waitedMs = systemClock.now() - startMs;
    if (!hasWriter && waitedMs >= WRITER_MS) throw coded('no writer');
    if (waitedMs >= endMs) throw coded(`no end within ${endMs / 1_000} s`);
    yield undefined;
  }
}

function isWrittenLater(fd: number, stats: Stats): boolean {
  return stats.isFIFO() || isatty(fd);
}

function isEmptyDevice(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === statSync(devNull).rdev;
}

/** The piece that a pipe has now; empty at the end, and before a program opens it; undefined when the program writes later. */
function pieceNow(fd: number): Buffer | undefined {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  try {
    return piece.subarray(0, readSync(fd, piece));
  } catch (thrown) {
    if (codeOf(thrown) !== 'EAGAIN') throw thrown;
    return undefined;
  }
}

function coded(code: string): Error {
  return Object.assign(new Error(code), { code });
}
