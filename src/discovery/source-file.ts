// The files that sync reads at each turn: kubeconfigs, and what they name.

import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { SourceError } from './provider.ts';

/** Certificates and configurations have some kB. */
const MOST_BYTES = 16 * 2 ** 20;

/**
 * Throws the error of the file system, and SourceError for a pipe or a device, which would stop the process, and
 * has its text once only.
 */
export function readSourceFile(path: string): Buffer {
  // O_NONBLOCK: opening a pipe would wait for a writer.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > MOST_BYTES)
      throw new SourceError(`${path}: is not a file of up to 16 MiB, which sync can read again`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}
