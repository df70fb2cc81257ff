// CPU time and memory of another process. On Linux from /proc (CPU in ticks of 10 ms); elsewhere from `ps`, which
// is coarser (CPU in 10 ms on macOS, whole seconds on others). Windows has neither, so figures are missing.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** USER_HZ: on every Linux that Node runs on, 100 ticks a second. */
const ticksPerSecond = 100;

/** User plus system time of a process since its start, in microseconds; undefined if unknown. */
export function cpuMicroseconds(pid: number): number | undefined {
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // The name in parentheses may contain spaces; utime and stime are fields 14 and 15, counted from 1.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / ticksPerSecond;
    }
    return secondsOf(ps(pid, 'time=')) * 1_000_000;
  } catch {
    // The process has ended or there is no `ps`: the caller shows a gap instead of a figure.
    return undefined;
  }
}

/** Resident memory of a process in bytes; undefined if unknown. */
export function residentBytes(pid: number): number | undefined {
  try {
    if (process.platform === 'linux') {
      const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
      return match === null ? undefined : Number(match[1]) * 1024;
    }
    return Number(ps(pid, 'rss=')) * 1024;
  } catch {
    // As above: a gap.
    return undefined;
  }
}

function ps(pid: number, column: string): string {
  return execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).trim();
}

/** Reads `[[dd-]hh:]mm:ss[.cc]`. */
function secondsOf(time: string): number {
  const [clock = '', days] = time.split('-').reverse();
  const seconds = clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return seconds + Number(days ?? 0) * 86_400;
}
