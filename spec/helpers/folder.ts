// Folders for the files of a suite.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
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

function made(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'stagedoor-spec-')));
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
