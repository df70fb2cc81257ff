// The bytes of a file that a user names: also of a device, or of a pipe, such as that of `<(command)` in a shell.

import { closeSync, constants, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { codeOf } from '../domain/errors/errors.ts';
import { sleep, systemClock } from '../domain/time/clock.ts';

const PIECE_BYTES = 65_536;
/** A program that opens the other end of a pipe is waited for this long, and looked for this often, in ms. */
const WRITER_MS = 5_000;
const PAUSE_MS = 20;

/** Rejects with the error of the file system; `no writer` for a pipe that no program has opened for writing after 5 s. */
export async function* filePieces(path: string): AsyncGenerator<Uint8Array> {
  if (!statSync(path).isFIFO()) {
    yield* createReadStream(path);
    return;
  }
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
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

async function firstPiece(fd: number): Promise<Buffer> {
  for (let waitedMs = 0; waitedMs <= WRITER_MS; waitedMs += PAUSE_MS) {
    const piece = pieceNow(fd);
    if (piece?.length !== 0) return piece ?? Buffer.alloc(0);
    await sleep(systemClock, PAUSE_MS);
  }
  throw Object.assign(new Error('no program writes to it'), { code: 'no writer' });
}

/** Empty at the end, and before a program opens it; undefined when the program writes later. */
function pieceNow(fd: number): Buffer | undefined {
  const piece = Buffer.alloc(PIECE_BYTES);
  try {
    return piece.subarray(0, readSync(fd, piece));
  } catch (thrown) {
    if (codeOf(thrown) !== 'EAGAIN') throw thrown;
    return undefined;
  }
}
