// The garbage collector of V8, for specs of what stays in memory.

import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
/** Collects all garbage, or that of young objects alone. */
export const collectGarbage: (options?: { readonly type: 'minor' }) => void = runInNewContext('gc');

/**
 * The bytes that each call leaves in the old generation: the median of three rounds, and all of them as text. A full collection
 * that V8 begins by itself distorts one round: it keeps what is allocated meanwhile, and then frees it. `call` makes a number of calls.
 */
export async function bytesLeftPerCall(
  call: (count: number) => Promise<void>,
  calls: number,
): Promise<readonly [median: number, rounds: string]> {
  await call(calls); // what is kept of calls, statistics and compiled code grow at first
  for (let time = 0; time < 2; time += 1) await collectAmidCalls(call);
  const rounds: number[] = [];
  while (rounds.length < 3) {
    const before = process.memoryUsage().heapUsed;
    await call(calls);
    for (let time = 0; time < 3; time += 1) {
      await turn();
      collectGarbage({ type: 'minor' });
    }
    rounds.push((process.memoryUsage().heapUsed - before) / calls);
  }
  return [rounds.toSorted((a, b) => a - b)[1] ?? Number.NaN, `${rounds.join(', ')} bytes per call`];
}

/** A full collection while calls are in flight: the objects that hold them are old from then on. */
async function collectAmidCalls(call: (count: number) => Promise<void>): Promise<void> {
  const calls = call(200);
  await turn();
  collectGarbage();
  await calls;
  collectGarbage();
}
