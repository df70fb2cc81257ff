// Signals to a program and every process it started, for each platform. child-process.ts sends them while the
// gateway runs, and reaper.ts after its death.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { codeOf } from '../../domain/errors/errors.ts';

/** Wait for the end of a child after its input was closed; SIGTERM follows. */
export const STDIN_END_MS = 2_000;
/** Wait after SIGTERM; SIGKILL follows. */
export const TERMINATE_MS = 3_000;

/** POSIX: a detached child leads its own group, which can be signalled as a whole. Windows has no such groups. */
export const ownsGroup = process.platform !== 'win32';

/** Signals a process group; the signal 0 only tests it. False when the group is empty. POSIX only. */
export function killGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    // EPERM: the group has a process that the gateway may not signal, or (macOS) a zombie.
    return codeOf(error) !== 'ESRCH';
  }
}

/**
 * True when a group has a running member. On Linux zombies do not count: process 1 must reap an orphan, and in a container that
 * may be a program that never does. POSIX only.
 */
export function groupRuns(leader: number): boolean {
  if (!killGroup(leader, 0)) return false;
  if (process.platform !== 'linux') return true;
  try {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && isRunningMember(name, leader));
  } catch {
    return true; // without /proc only the result of the signal is known
  }
}

/** Kills a program and its descendants: Windows has no SIGTERM for programs without a window. */
export function killTree(root: number): void {
  const taskkill = spawn('taskkill', ['/pid', String(root), '/T', '/F'], {
    stdio: 'ignore',
    windowsHide: true,
  });
  taskkill.on('error', () => {}); // the stop of the child gives up after a while
}

/** Reads `pid (name) state parent group …`; the name may contain anything, so reading begins after the last bracket. */
function isRunningMember(pid: string, leader: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    return group === String(leader) && state !== 'Z' && state !== 'X';
  } catch {
    return false; // it has ended since the listing
  }
}
