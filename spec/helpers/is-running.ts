// Whether a process still runs, for specs that prove that nothing was left behind.

import { readFileSync } from 'node:fs';

/** False for the dead as well whom nobody has buried yet: they hold nothing but a number. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false; // no such process
  }
}
