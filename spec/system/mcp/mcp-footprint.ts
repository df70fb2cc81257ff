// The resources of a running gateway: processes, open files, handles, and the heap after a garbage collection. A module that is
// loaded before the gateway reports the latter two at each SIGUSR2.

import { readdirSync } from 'node:fs';
import type { Program } from '../../helpers/programs/program.ts';

const teller = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  let times = 0;
  process.on('SIGUSR2', () => {
    gc();
    // Objects that a finalizer releases are collected the next time.
    setTimeout(() => {
      gc();
      times += 1;
      const resources = process.getActiveResourcesInfo().length;
      const reported = { resources, heapBytes: process.memoryUsage().heapUsed };
      process.stderr.write('footprint ' + times + ': ' + JSON.stringify(reported) + '\\n');
    }, 10);
  });`;

/** For NODE_OPTIONS: lets a program report its footprint. */
export const TELLS_FOOTPRINT = `--import=data:text/javascript,${encodeURIComponent(teller)}`;

export interface Footprint {
  /** Its living descendants. */
  readonly processes: number;
  readonly files: number;
  /** Active resources of its event loop: sockets, pipes, timers, children. */
  readonly resources: number;
  readonly heapBytes: number;
}

/** A function that returns the present footprint of a program; its calls must not overlap. */
export function footprintOf(program: Program): () => Promise<Footprint> {
  let times = 0;
  return async () => {
    times += 1;
    program.signal('SIGUSR2');
    const [, reported = ''] = await program.complains(new RegExp(`^footprint ${times}: (.*)$`, 'm'));
    return {
      processes: program.descendants().length,
      files: readdirSync(`/proc/${program.process.pid}/fd`).length,
      ...JSON.parse(reported),
    };
  };
}

/** Whether every figure is at most the part `part` above the figure before. */
export function isBack(now: Footprint, before: Footprint, part: number): boolean {
  const keys = ['processes', 'files', 'resources', 'heapBytes'] as const;
  return keys.every((key) => now[key] <= before[key] * (1 + part));
}
