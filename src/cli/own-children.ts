// The end in a hurry: kills what this process has started, without asking any part of the gateway, which may be busy
// stopping the same children politely. The polite way is transports/stdio/child-process.ts.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { killGroup } from '../transports/stdio/process-group.ts';

/**
 * Kills every child of this process and all members of their groups; each child of the gateway leads one. Synchronous,
 * so that the process can exit right after. On Windows, where there are no groups, this process ends with its tree.
 */
export function killOwnChildren(): void {
  if (process.platform === 'win32') {
    spawnSync('taskkill', ['/pid', String(process.pid), '/T', '/F'], { windowsHide: true });
    return;
  }
  for (const pid of ownChildren()) killGroup(pid, 'SIGKILL');
}

function ownChildren(): number[] {
  const table = process.platform === 'linux' ? readProcesses() : askPs();
  return table.filter(({ parent }) => parent === process.pid).map(({ pid }) => pid);
}

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
}

/** Images for containers often come without ps. */
function readProcesses(): ProcessRow[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // "pid (name) state parent …", where the name may hold anything.
        const [, parent] = /\) \S (\d+) [^)]*$/.exec(readFileSync(`/proc/${name}/stat`, 'latin1')) ?? [];
        return [{ pid: Number(name), parent: Number(parent) }];
      } catch {
        return []; // ended between the two looks
      }
    });
}

function askPs(): ProcessRow[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return (stdout ?? '').split('\n').map((line) => {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    return { pid: pid ?? 0, parent: parent ?? 0 };
  });
}
