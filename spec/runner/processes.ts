// Ends a spec process together with everything it started. Knows how POSIX and Windows group processes, and nothing about
// specs.

import { type ChildProcess, spawnSync } from 'node:child_process';

const isWindows = process.platform === 'win32';

/**
 * Whether a child must be started `detached` so that `killGroup` can reach it. On POSIX this makes it the leader of
 * its own process group; on Windows `taskkill /T` follows parentage and a detached child would open a console.
 */
export const startsOwnGroup = !isWindows;

/** Kills the process and its whole group at once. Harmless if all have ended. */
export function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (isWindows) {
    spawnSync('taskkill', ['/pid', String(child.pid), '/T', '/F'], { stdio: 'ignore' });
    return;
  }
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    // ESRCH: the group is gone already. EPERM: only zombies are left of it (on macOS).
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
