// Reads the files that settings name, at once, because settings are read before anything runs. A file may also be a pipe, such as that of
// `<(command)` in a shell, or a device.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { codeOf } from '../domain/errors/errors.ts';

const PIECE_BYTES = 65_536;
const MOST_BYTES = 16 * 2 ** 20;
/** Between two looks into a pipe whose program has not written yet. */
const PAUSE_MS = 5;
/** A program that opens the other end of a pipe is waited for this long. */
const WRITER_MS = 5_000;

/**
 * Throws the error of the file system, or one with the code `no writer` for a pipe that no program has opened for writing after 5 s, or
 * `too long`.
 */
export function readFileNow(path: string): Buffer {
  // O_NONBLOCK: opening a pipe would wait for a writer.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
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

/** Waits for the program of a pipe. Empty at the end. */
function nextPiece(fd: number): Buffer {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  for (;;)
    try {
      return piece.subarray(0, readSync(fd, piece));
    } catch (thrown) {
      if (codeOf(thrown) !== 'EAGAIN') throw thrown;
      pause();
    }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

function coded(code: string): Error {
  return Object.assign(new Error(code), { code });
}
