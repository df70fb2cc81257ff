// Finds and kills processes of this machine, for specs that check that none is left behind. All functions except
// `isRunning` and `killNow` need /proc.

import { readdirSync, readFileSync } from 'node:fs';

/** Whether processes can be found on this machine. */
export const canFindProcesses = process.platform === 'linux';
/** The reason given for a skipped spec. */
export const NO_PROCESSES = 'processes are found through /proc, which is Linux';

/** The files of a process in /proc: its arguments, its environment, its state and parent. */
type ProcessFile = 'cmdline' | 'environ' | 'stat';

/** False for zombies as well: they hold no resources but their id. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !canFindProcesses || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false; // no such process
  }
}

/** Empty when the process has ended or belongs to another user. */
export function readProcessFile(pid: number | undefined, file: ProcessFile): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

/** Ids of all matching processes. */
export function processesWhere(file: ProcessFile, isWanted: (text: string) => boolean): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.filter((pid) => isWanted(readProcessFile(pid, file)));
}

/** Ids of all descendants of a process. */
export function descendantsOf(ancestor: number): number[] {
  const children = processesWhere('stat', (stat) => /.*\) \S (\d+) /s.exec(stat)?.[1] === String(ancestor));
  return children.flatMap((pid) => [pid, ...descendantsOf(pid)]);
}

/** Kills a process; does nothing when it has already ended. */
export function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ESRCH')) throw thrown;
  }
}
