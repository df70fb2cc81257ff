// Signals to a program and every process it started, for each platform. child-process.ts sends them while the
// gateway runs, and reaper.ts after its death.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { codeOf } from '../domain/errors/errors.ts';

/** Wait for the end of a child after its input was closed; SIGTERM follows. */
export const STDIN_END_MS = 2_000;
/** Wait after SIGTERM; SIGKILL follows. */
export const TERMINATE_MS = 3_000;

/** POSIX: a detached child leads its own group, which can be signalled as a whole. Windows has no such groups. */
export const ownsGroup = process.platform !== 'win32';

/**
 * How a shell is started that watches over processes after the end of the gateway: it is not in the gateway's group, which gets
 * signals from Ctrl-C and the terminal.
 */
export const WATCHING_SHELL = { detached: true, cwd: '/', env: { PATH: '/usr/bin:/bin' } } as const;

/** Signals a process group; the signal 0 only tests it. False when the group is empty. POSIX only. */
export function killGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    // EPERM: the group has a process that the gateway may not signal, or (macOS) a zombie.
    return codeOf(error) !== 'ESRCH';
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

/**
 * The group of a running process, by its entry in /proc; undefined for a zombie, and for any other entry. It reads `pid (name)
 * state parent group …`; the name may contain anything, so reading begins after the last bracket.
 */
export function runningGroupOf(entry: string): number | undefined {
  if (!/^\d+$/.test(entry)) return undefined;
  try {
    const stat = readFileSync(`/proc/${entry}/stat`, 'latin1');
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    return state === 'Z' || state === 'X' ? undefined : Number(group);
  } catch {
    return undefined; // it has ended since the listing
  }
}
