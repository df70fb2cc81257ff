// Folders for the files of a suite.

import { mkdtempSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Suite } from './suite.ts';

/** The path of the folder, or of something in it. */
type Folder = (...names: string[]) => string;

/** A folder for each test of the suite; it is there until its other hooks, declared later, have ended. */
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

/** A folder until the work has ended, well or not. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = made();
  try {
    return await work(folder);
  } finally {
    await remove(folder);
  }
}

/** The real path: some servers compare it with the paths that they are asked for. */
function made(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'stagedoor-spec-')));
}

/** Not `rmSync`, whose retries do not wait: a process that was killed may still be writing. */
function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 10 });
}
