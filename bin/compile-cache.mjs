// Lets Node keep the code it compiled: with it a start takes 0.45 s instead of 0.7 s, and 20 MB less.
// In a folder of this user alone, because whoever can write there decides what code runs. Without such a folder, or with
// NODE_DISABLE_COMPILE_CACHE=1, everything works as before, a little later. Plain JavaScript that Node 12 can parse.

import { mkdirSync, statSync } from 'fs';
import nodeModule from 'module';
import { homedir } from 'os';
import { join } from 'path';

/** To be called before anything large is imported. Never fails; says whether there is a cache now. */
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
    return false; // a home that cannot be written to, or none at all
  }
}

/** Under sudo the home may still be that of somebody else. Windows gives each user a folder that is closed to others. */
function isOurs(folder) {
  if (process.platform === 'win32') return true;
  const { uid, mode } = statSync(folder);
  return uid === process.getuid() && (mode & 0o022) === 0;
}
