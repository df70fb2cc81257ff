// Describes the machine of a run, without its name.

import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';

/** The facts that a reader needs to compare figures of different machines. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGigabytes: number;
  readonly operatingSystem: string;
  readonly node: string;
  /** Load average of the last minute when the run began: above 0 the machine had other work. */
  readonly loadBefore: number;
}

/** Describes the machine now: call it before anything is started. */
export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGigabytes: Math.round(totalmem() / 1024 ** 3),
    operatingSystem: `${type()} ${release().split('.').slice(0, 2).join('.')}`,
    node: process.version,
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(2)),
  };
}

/** The machine in one line. */
export function machineLine({
  cpu,
  cores,
  memoryGigabytes,
  operatingSystem,
  node,
  loadBefore,
}: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGigabytes} GB, ${operatingSystem}, Node ${node}; load average before the run ${loadBefore}`;
}
