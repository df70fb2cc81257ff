// The files that sync reads at each turn: kubeconfigs, and the files that they name.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { SourceError } from './provider.ts';

/** The most bytes of a file: certificates and configurations have some kB. */
const MAX_FILE_BYTES = 16 * 2 ** 20;
const PIECE_BYTES = 65_536;

/**
 * The content of a file. Throws the error of the file system, and SourceError for a pipe or a device, which would
 * stop the process, and has its text once only.
 */
export function readSourceFile(path: string): Buffer {
  // O_NONBLOCK: opening a pipe would wait for a writer.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(fd);
    const content = stats.isFile() && stats.size <= MAX_FILE_BYTES ? contentOf(fd) : undefined;
    if (content !== undefined) return content;
    throw new SourceError(`${path}: is not a file of up to 16 MiB, which sync can read again`);
  } finally {
    closeSync(fd);
  }
}

/**
 * The content of an open file; undefined for one that is too long. Files of the system have the size 0, whatever they
 * contain.
 */
function contentOf(fd: number): Buffer | undefined {
  const pieces: Buffer[] = [];
  for (let bytes = 0; bytes <= MAX_FILE_BYTES; ) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    const count = readSync(fd, piece);
    if (count === 0) return Buffer.concat(pieces);
    pieces.push(piece.subarray(0, count));
    bytes += count;
  }
  return undefined;
}
