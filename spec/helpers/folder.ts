// Temporary folders for specs.

import { mkdtempSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Suite } from './suite.ts';

/** The path of the folder, or of a file in it. */
type Folder = (...names: string[]) => string;

/** A folder for each test of the suite; it is removed after the hooks that are declared later. */
export function folderOfEach(test: Suite): Folder {
  let folder = '';
  test.before.each(() => {
    folder = made();
  });
  test.after.each(() => remove(folder));
  return (...names) => join(folder, ...names);
}

/** A folder for all tests of the suite. */
export function folderOfAll(test: Suite): Folder {
  const folder = made();
  test.after(() => remove(folder));
  return (...names) => join(folder, ...names);
}

/** Runs the work with a folder, which is removed afterwards, also on failure. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = made();
  try {
    return await work(folder);
  } finally {
    await remove(folder);
  }
}

/** The real path, because some servers compare it with requested paths. */
function made(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'stagedoor-spec-')));
}

/** Not `rmSync`, whose retries do not wait: a killed process may still be writing. */
function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 10 });
}
