// Returns the memory that only the start needed: half of the heap is garbage then, and an idle process never collects it.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_MS = 1_000;
/** Under load V8 collects by itself; after a minute it has. */
const MAX_CHECKS = 60;
/** The share of a second in which an idle event loop runs code. */
const IDLE_SHARE = 0.05;
/** A collection of a larger heap, of thousands of instances, would stop the process for longer than 50 ms. */
const MAX_HEAP_BYTES = 100e6;

/** Collects once, in the first idle second. Returns a function that cancels it. */
export function releaseStartMemory(): () => void {
  let checks = 0;
  let last = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    checks += 1;
    const isIdle = utilization < IDLE_SHARE;
    if (isIdle || checks === MAX_CHECKS) clearInterval(timer);
    if (isIdle && process.memoryUsage().heapUsed < MAX_HEAP_BYTES) collect();
  }, CHECK_MS).unref();
  return () => clearInterval(timer);
}

/** The only way to V8's collector that needs no flag on the command line. V8 itself then shrinks the heap within ten seconds. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc: () => void = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  gc();
}
