// The files that this process may have open, sockets included.

import { readFileSync } from 'node:fs';

/** The number of files left for nodes, backends, programs and the database when clients take all others. */
const RESERVED_FILES = 1_024;

/** The greatest number of a file that a connection of a client may have; a new file gets the lowest free number. */
export function lastClientFile(): number {
  const most = openFilesLimit();
  return most - Math.min(RESERVED_FILES, Math.floor(most / 8));
}

/** The most files that this process may have open; Infinity where there is no limit, or none is known. */
function openFilesLimit(): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY;
  try {
    const [, most = Number.POSITIVE_INFINITY] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return Number(most);
  } catch {
    return Number.POSITIVE_INFINITY; // no /proc here
  }
}
