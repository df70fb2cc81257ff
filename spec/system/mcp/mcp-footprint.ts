// What a running gateway holds: processes, open files, handles, and the heap after everything that nobody holds was
// collected. A module that is loaded before the gateway tells the latter two at each SIGUSR2.

import { readdirSync } from 'node:fs';
import type { Program } from '../../helpers/program.ts';

const teller = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  let times = 0;
  process.on('SIGUSR2', () => {
    gc();
    // What a finalizer lets go of is collected the next time.
    setTimeout(() => {
      gc();
      times += 1;
      const resources = process.getActiveResourcesInfo().length;
      const told = { resources, heapBytes: process.memoryUsage().heapUsed };
      process.stderr.write('footprint ' + times + ': ' + JSON.stringify(told) + '\\n');
    }, 10);
  });`;

/** For NODE_OPTIONS: makes a program one whose footprint can be asked for. */
export const TELLS_FOOTPRINT = `--import=data:text/javascript,${encodeURIComponent(teller)}`;

export interface Footprint {
  /** That it started and that live. */
  readonly processes: number;
  readonly files: number;
  /** What keeps its event loop busy: sockets, pipes, timers, children. */
  readonly resources: number;
  readonly heapBytes: number;
}

/** The footprint of a program each time it is called, one call after the other. */
export function footprintOf(program: Program): () => Promise<Footprint> {
  let times = 0;
  return async () => {
    times += 1;
    program.signal('SIGUSR2');
    const [, told = ''] = await program.complains(new RegExp(`^footprint ${times}: (.*)$`, 'm'));
    return {
      processes: program.descendants().length,
      files: readdirSync(`/proc/${program.process.pid}/fd`).length,
      ...JSON.parse(told),
    };
  };
}

/** True when nothing of it is more than so large a part above what was there before. */
export function isBack(now: Footprint, before: Footprint, part: number): boolean {
  const keys = ['processes', 'files', 'resources', 'heapBytes'] as const;
  return keys.every((key) => now[key] <= before[key] * (1 + part));
}
