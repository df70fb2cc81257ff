// The folder of the socket files on which the workers of a gateway reach each other: private to this user, and
// removed at the end. Source: ADR 174.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The most bytes of the path of a socket file: 107 on Linux, 103 on macOS. */
const MAX_PATH_BYTES = 103;
/** The length of a slash and the name of a socket file, which is the number of a worker. */
const NAME_BYTES = 8;

/** Makes the folder; undefined on Windows, and without a folder for temporary files with a short enough path. */
export function openSocketFolder(
  roots: readonly string[] = [tmpdir(), '/tmp'],
): { readonly path: string; remove(): void } | undefined {
  if (process.platform === 'win32') return undefined;
  for (const root of roots) {
    const prefix = join(root, 'stagedoor-workers-');
    if (Buffer.byteLength(`${prefix}XXXXXX`) + NAME_BYTES > MAX_PATH_BYTES) continue;
    try {
      const path = mkdtempSync(prefix); // mode 0700
      return { path, remove: () => removeIfPossible(path) };
    } catch {
      // The next one, or loopback.
    }
  }
  return undefined;
}

/** Removes the folder. A failure is not one of the gateway: this process may be unable to open any more files. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // An empty folder for temporary files stays.
  }
}
