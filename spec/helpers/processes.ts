// Processes of this machine, for specs that prove that nothing was left behind: whether they run, what they were started
// with, and their end. All but `isRunning` and `killNow` need /proc.

import { readdirSync, readFileSync } from 'node:fs';

/** Whether processes can be found here. */
export const canFindProcesses = process.platform === 'linux';
/** What a spec says when it is skipped. */
export const NO_PROCESSES = 'processes are found through /proc, which is Linux';

/** What /proc tells of a process: its words, its environment, its state and its parent. */
type ProcessFile = 'cmdline' | 'environ' | 'stat';

/** False for the dead as well whom nobody has buried yet: they hold nothing but a number. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !canFindProcesses || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false; // no such process
  }
}

/** Empty when it has ended, or is somebody else's. */
export function toldOf(pid: number | undefined, file: ProcessFile): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

/** Ids of all processes of which this holds. */
export function processesWhere(file: ProcessFile, isWanted: (told: string) => boolean): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.filter((pid) => isWanted(toldOf(pid, file)));
}

/** Ids of the processes below this one, at any depth. */
export function descendantsOf(ancestor: number): number[] {
  const children = processesWhere('stat', (stat) => /.*\) \S (\d+) /s.exec(stat)?.[1] === String(ancestor));
  return children.flatMap((pid) => [pid, ...descendantsOf(pid)]);
}

/** Harmless when it has ended since it was found. */
export function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH')) throw thrown;
  }
}
