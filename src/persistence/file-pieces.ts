// The bytes of a file that a user names: also of a device, or of a pipe, such as that of `<(command)` in a shell.

import { constants, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { codeOf } from '../domain/errors.ts';

const PIECE_BYTES = 65_536;

/** Rejects with the error of the file system; `no writer` for a pipe to which no program writes, which would be waited for forever. */
export async function* filePieces(path: string): AsyncGenerator<Uint8Array> {
  if (!statSync(path).isFIFO()) {
    yield* createReadStream(path);
    return;
  }
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const pipe = new Socket({ fd, readable: true, writable: false });
  try {
    yield firstPiece(fd);
    yield* pipe;
  } finally {
    pipe.destroy();
  }
}

function firstPiece(fd: number): Buffer {
  const piece = Buffer.alloc(PIECE_BYTES);
  try {
    const length = readSync(fd, piece);
    if (length === 0) throw Object.assign(new Error('no program writes to it'), { code: 'no writer' });
    return piece.subarray(0, length);
  } catch (thrown) {
    if (codeOf(thrown) !== 'EAGAIN') throw thrown;
    return Buffer.alloc(0); // it writes later
  }
}
