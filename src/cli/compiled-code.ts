// Lets go of the compiled code that Node has read from its cache; that there is one is the business of bin/compile-cache.mjs.

import { opendirSync } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';

/**
 * Node keeps a second copy of all compiled code that it has read, until it is told to write down what is new: 6 MB, into
 * which goes what is loaded next. While the cache is still empty that would mean writing two thousand files, 0.3 s of the
 * very first start; then it is left for the end of the process, as ever. Does nothing without a cache. Never fails.
 */
export function letGoOfCompiledCode(): void {
  const folder = getCompileCacheDir();
  if (folder !== undefined && hasFiles(folder)) flushCompileCache();
}

function hasFiles(folder: string): boolean {
  try {
    const entries = opendirSync(folder);
    try {
      return entries.readSync() !== null;
    } finally {
      entries.closeSync();
    }
  } catch {
    // Another process has just removed it.
    return false;
  }
}
