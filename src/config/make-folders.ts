// Makes a folder and its parents. Node's own `recursive` never ends in a folder like /proc, in which nobody can make one.

import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../domain/errors/errors.ts';

/** Makes a folder, and those above it that do not exist. `mode`: of each new one. Throws the error of the file system. */
export function makeFolders(path: string, mode = 0o777): void {
  const above = dirname(path);
  if (above !== path && !existsSync(above)) makeFolders(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}
