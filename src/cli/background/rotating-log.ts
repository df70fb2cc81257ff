// Writes the log of a gateway in the background, which is its standard error, and keeps the file from growing for ever. The
// file is copied and emptied, not renamed: Node and the system write into the same one, also in a crash.

import { copyFileSync, fstatSync, ftruncateSync, renameSync, writeSync } from 'node:fs';

const STANDARD_ERROR = 2;
/** Size at which the file is set aside, in bytes, and how many of those are kept: `gateway.log.1` is the newest. */
const LARGEST_BYTES = 10 * 1024 * 1024;
const KEPT_FILES = 5;

/** The `write` of a log sink. It throws what the file system says about the log itself; a copy that fails is done without. */
export function rotatingLog(
  path: string,
  { descriptor = STANDARD_ERROR, largestBytes = LARGEST_BYTES } = {},
): (bytes: Uint8Array) => number {
  let size = fstatSync(descriptor).size;
  return (bytes) => {
    if (size > 0 && size + bytes.length > largestBytes) {
      setAside(path);
      ftruncateSync(descriptor);
      size = 0;
    }
    const written = writeSync(descriptor, bytes);
    size += written;
    return written;
  };
}

function setAside(path: string): void {
  try {
    for (let number = KEPT_FILES - 1; number >= 1; number -= 1)
      renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    copyFileSync(path, `${path}.1`);
  } catch {
    // No room, or no right to write: the newest lines are worth more than the old ones.
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}
