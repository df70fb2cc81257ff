// Makes Node keep compiled code: a start then takes 0.45 s instead of 0.7 s, and 20 MB less. The folder belongs
// to this user alone, because everyone who can write there decides what code runs. Without such a folder, or with
// NODE_DISABLE_COMPILE_CACHE=1, everything works, only later. Plain JavaScript that Node 12 can parse.

import { mkdirSync, statSync } from 'fs';
import nodeModule from 'module';
import { homedir } from 'os';
import { join } from 'path';

/** Must be called before anything large is imported. Never fails; returns whether there is a cache now. */
export function keepCompiledCode(environment = process.env) {
  if (nodeModule.enableCompileCache === undefined) return false; // before Node 22.8
  try {
    const base = environment.XDG_CACHE_HOME || environment.LOCALAPPDATA || join(homedir(), '.cache');
    const folder = join(base, 'stagedoor', 'compiled');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!isOurs(folder)) return false;
    nodeModule.enableCompileCache(folder);
    return true;
  } catch (_) {
    return false; // no home folder, or one that is not writable
  }
}

/** Under sudo the home folder may be another user's. On Windows other users cannot read a user's folder. */
function isOurs(folder) {
  if (process.platform === 'win32') return true;
  const { uid, mode } = statSync(folder);
  return uid === process.getuid() && (mode & 0o022) === 0;
}
