// Returns the memory that only the start needed: half of the heap is garbage then, which an idle process never collects.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_MS = 1_000;
/** The most checks, one each second: under load V8 has collected by itself after a minute. */
const MAX_CHECKS = 60;
/** The share of a second in which an idle event loop runs code. */
const IDLE_SHARE = 0.05;
/** The largest heap that is collected: with a larger one, of thousands of instances, the process would stop for over 50 ms. */
const MAX_HEAP_BYTES = 100e6;

/** Collects once, in the first idle second. Returns a function that cancels it. */
export function releaseIdleMemory(): () => void {
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

/**
 * Collects garbage, in the only way that needs no flag on the command line. V8 itself then shrinks the heap within
 * ten seconds.
 */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc: () => void = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  gc();
}
