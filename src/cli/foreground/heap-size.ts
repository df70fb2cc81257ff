// Keeps the heap small. The young generation, which V8 enlarges under load, stays at a quarter of V8's bound. Memory that only
// the start or a load needed is returned: an idle process allocates too little for a collection, and until one V8 keeps the pages
// of its young generation, also those that it has emptied: after a flood of requests several hundred MB. Source: ADR 139.

import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_MS = 1_000;
/** The share of a second in which an idle event loop runs code. */
const IDLE_SHARE = 0.05;
/** The idle seconds in a row before a collection after load: after it the first calls run code that is not optimized. */
const MIN_IDLE_CHECKS = 30;
/** The most live objects: with more, of thousands of instances, a collection would stop the process for over 50 ms. */
const MAX_LIVE_BYTES = 100e6;

/** Both halves of the young generation, of which each collection copies one: what it copies is the pause. */
const MAX_YOUNG_BYTES = 32 * 1024 * 1024;

/**
 * Collects in the first idle second after the start, and once after each load, when 30 seconds were idle, and limits the young
 * generation. Returns a function that ends this.
 */
export function keepHeapSmall(): () => void {
  let isDue = true;
  let minIdleChecks = 1;
  let idleChecks = 0;
  let liveBytes = Number.POSITIVE_INFINITY;
  let last = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    limitYoungGeneration();
    const isIdle = performance.eventLoopUtilization(last).utilization < IDLE_SHARE;
    isDue ||= !isIdle;
    idleChecks = isIdle ? idleChecks + 1 : 0;
    if (isDue && idleChecks >= minIdleChecks && Math.min(liveBytes, heapBytes()) < MAX_LIVE_BYTES) {
      collect();
      liveBytes = heapBytes();
      isDue = false;
      minIdleChecks = MIN_IDLE_CHECKS;
    }
    last = performance.eventLoopUtilization();
  }, CHECK_MS).unref();
  return () => clearInterval(timer);
}

/** V8 doubles the young generation when much of it survives; the factor is a flag that it reads each time. */
function limitYoungGeneration(): void {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  const mayGrow = young === undefined || young.space_size < MAX_YOUNG_BYTES;
  setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`);
}

/** The size of the objects in the heap, garbage included. */
function heapBytes(): number {
  return getHeapStatistics().used_heap_size;
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
