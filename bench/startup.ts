// Measures the cost of a gateway before any call: time from start to listening, and memory at rest. No
// instances, no demo. Each start is a new process; the file cache of the operating system is warm.

import { setTimeout as delay } from 'node:timers/promises';
import { startGateway } from './gateway.ts';
import { residentBytes } from './process-usage.ts';
import { median, medianOrNull } from './statistics.ts';

/** Medians over the cold starts. */
export interface Startup {
  readonly startToListeningMs: number;
  readonly idleResidentBytes: number | null;
  readonly startsMs: readonly number[];
}

/** Rest of a gateway before its memory is read, in ms. */
const restMs = 2000;

export async function measureStartup(times: number): Promise<Startup> {
  const startsMs: number[] = [];
  const resident: (number | null)[] = [];
  for (let start = 0; start < times; start += 1) {
    const gateway = await startGateway();
    startsMs.push(gateway.startedMs);
    await delay(restMs);
    resident.push(residentBytes(gateway.pid) ?? null);
    await gateway.stop();
  }
  return {
    startToListeningMs: median(startsMs),
    idleResidentBytes: medianOrNull(resident),
    startsMs,
  };
}
