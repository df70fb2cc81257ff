// Reads the files that users name. A file may also be a pipe, such as that of `<(command)` in a shell, or a
// device; certificates and their keys may not. Files of settings are read at once, because settings are read
// before anything runs; larger ones in pieces.

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
import { Socket } from 'node:net';
import { codeOf, OperatorError } from '../domain/errors/errors.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';

const PIECE_BYTES = 65_536;
const MOST_BYTES = 16 * 2 ** 20;
/** A chain of certificates has some KiB. */
const MOST_PEM_BYTES = 2 ** 20;
/** O_NONBLOCK: opening a pipe would wait for a writer. */
const AT_ONCE = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
/** Between two looks into a pipe whose program has not written yet. */
const PAUSE_MS = 5;
/** A program that opens the other end of a pipe is waited for this long. */
const WRITER_MS = 5_000;

/**
 * Throws the error of the file system, or one with the code `no writer` for a pipe that no program has opened for
 * writing after 5 s, or `too long`.
 */
export function readFileNow(path: string): Buffer {
  const fd = openSync(path, AT_ONCE);
  try {
    const isPipe = fstatSync(fd).isFIFO();
    const pieces: Buffer[] = [];
    for (let bytes = 0, waitedMs = 0; ; ) {
      const piece = nextPiece(fd);
      if (piece.length === 0 && isPipe && bytes === 0) {
        if (waitedMs >= WRITER_MS) throw coded('no writer');
        waitedMs += PAUSE_MS;
        pause();
        continue;
      }
      if (piece.length === 0) return Buffer.concat(pieces);
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > MOST_BYTES) throw coded('too long');
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * For files that the program itself writes and reads again, at once: a pipe would let it wait for ever, and a device is empty, as
 * `/dev/null` is. Throws the error of the file system, or one with the code `not a file` or `too long`.
 */
export function readRegularFile(path: string): Buffer {
  const fd = openSync(path, AT_ONCE);
  try {
    const stats = fstatSync(fd);
    if (stats.isCharacterDevice()) return Buffer.alloc(0);
    if (!stats.isFile() && !stats.isDirectory()) throw coded('not a file');
    const pieces: Buffer[] = [];
    let bytes = 0;
    for (let piece = nextPiece(fd); piece.length > 0; piece = nextPiece(fd)) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > MOST_BYTES) throw coded('too long');
    }
    return Buffer.concat(pieces);
  } finally {
    closeSync(fd);
  }
}

/** Rejects with the error of the file system; `no writer` for a pipe that no program has opened for writing after 5 s. */
export async function* filePieces(path: string): AsyncGenerator<Uint8Array> {
  if (!statSync(path).isFIFO()) {
    yield* createReadStream(path);
    return;
  }
  const fd = openSync(path, AT_ONCE);
  const first = await firstPiece(fd).catch((thrown: unknown) => {
    closeSync(fd);
    throw thrown;
  });
  // Not earlier: a socket reads from its first moment on, and would take the first piece.
  const pipe = new Socket({ fd, readable: true, writable: false });
  try {
    yield first;
    yield* pipe;
  } finally {
    pipe.destroy();
  }
}

/**
 * For files that are read again while the gateway runs: a pipe has its text only once. Rejects with the error of
 * the file system, or OperatorError.
 */
export async function readPemFile(path: string, check?: (stats: Stats) => void): Promise<string> {
  const file = await open(path, AT_ONCE);
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MOST_PEM_BYTES) throw new OperatorError('it is not a file in PEM');
    check?.(stats);
    const content = await contentUpTo(MOST_PEM_BYTES, file);
    if (content === undefined) throw new OperatorError('it is not a file in PEM');
    return content.toString('utf8');
  } finally {
    await file.close();
  }
}

/** Undefined for a longer file. Files of the system have the size 0, whatever they contain. */
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

/** Waits for the program of a pipe. Empty at the end. */
function nextPiece(fd: number): Buffer {
  for (;;) {
    const piece = pieceNow(fd);
    if (piece !== undefined) return piece;
    pause();
  }
}

async function firstPiece(fd: number): Promise<Buffer> {
  for (let waitedMs = 0; waitedMs <= WRITER_MS; waitedMs += PAUSE_MS) {
    const piece = pieceNow(fd);
    if (piece?.length !== 0) return piece ?? Buffer.alloc(0);
    await sleep(systemClock, PAUSE_MS);
  }
  throw coded('no writer');
}

/** Empty at the end, and before a program opens it; undefined when the program writes later. */
function pieceNow(fd: number): Buffer | undefined {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  try {
    return piece.subarray(0, readSync(fd, piece));
  } catch (thrown) {
    if (codeOf(thrown) !== 'EAGAIN') throw thrown;
    return undefined;
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

function coded(code: string): Error {
  return Object.assign(new Error(code), { code });
}
