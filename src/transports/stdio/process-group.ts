// Signals to a program and everything it started, for each platform.
// child-process.ts decides when to send them.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** POSIX: a detached child leads a group of its own that can be signalled as a whole. Windows has no such groups. */
export const ownsGroup = process.platform !== 'win32';

/** Signals a whole process group; 0 only asks. False when the group is empty. POSIX only. */
export function killGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    // EPERM: the group has a process that the gateway may not signal, or (macOS) a zombie.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * True when a group has a running member. On Linux zombies do not count: an orphan waits for the first process of the
 * machine to reap it, and in a container that may be a program that never does. POSIX only.
 */
export function groupRuns(leader: number): boolean {
  if (!killGroup(leader, 0)) return false;
  if (process.platform !== 'linux') return true;
  try {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && isRunningMember(name, leader));
  } catch {
    return true; // Without /proc the answer to the signal is all there is.
  }
}

/** Ends a program and its descendants by force: Windows has no signal for programs without a window. */
export function killTree(root: number): void {
  const taskkill = spawn('taskkill', ['/pid', String(root), '/T', '/F'], {
    stdio: 'ignore',
    windowsHide: true,
  });
  taskkill.on('error', () => killAlone(root));
}

/** Reads `pid (name) state parent group …`; the name may hold anything, so that it is left out from its last bracket. */
function isRunningMember(pid: string, leader: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    return group === String(leader) && state !== 'Z' && state !== 'X';
  } catch {
    return false; // It went away between the listing and the reading.
  }
}

function killAlone(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has gone by itself in the meantime.
  }
}
