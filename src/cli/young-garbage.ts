// Keeps the collections of V8's young generation short while many objects live long, as with thousands of calls that wait. Such a
// collection copies what lives, at half a megabyte to one per ms, and V8 collects only when 32 MB are full. Source: ADR 255.

import {
  constants,
  type NodeGCPerformanceDetail,
  PerformanceObserver,
  type PerformanceObserverEntryList,
} from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Clock, systemClock } from '../domain/clock.ts';

/** The young generation. */
export interface YoungHeap {
  /** Live and dead objects, in bytes. */
  used(): number;
  /** Copies what lives. What has lived through one collection is old after the next one. */
  collect(): void;
  /** Calls back after each collection, also after those of `collect`. */
  observe(onCollected: () => void): void;
}

/** When this much lives after a collection, the next ones come early. */
const MANY_BYTES = 12e6;
/** Then each follows as soon as this much was allocated. */
const STEP_BYTES = 4e6;
const LOOK_MS = 5;
/** After this many collections in a row that left less than this, V8 decides again. */
const CALM_COLLECTIONS = 20;
const CALM_BYTES = 1e6;
/** The same after this time without one. */
const REST_MS = 1_000;

export function shortenCollections(heap: YoungHeap = v8Heap(), clock: Clock = systemClock): void {
  let isShortening = false;
  heap.observe(() => {
    const livingBytes = heap.used();
    if (isShortening || livingBytes < MANY_BYTES) return;
    isShortening = true;
    collectEarly(heap, clock, livingBytes, () => {
      isShortening = false;
    });
  });
}

function collectEarly(heap: YoungHeap, clock: Clock, livingBytes: number, done: () => void): void {
  let lastBytes = livingBytes;
  let collectedAtMs = clock.now();
  let calm = 0;
  const collect = (): void => {
    heap.collect();
    lastBytes = heap.used();
    collectedAtMs = clock.now();
    calm = lastBytes < CALM_BYTES ? calm + 1 : 0;
  };
  const look = (): void => {
    lastBytes = Math.min(lastBytes, heap.used()); // less than before: V8 has collected
    const isAtRest = clock.now() - collectedAtMs >= REST_MS;
    if (isAtRest || heap.used() - lastBytes >= STEP_BYTES) collect();
    if (!isAtRest && calm < CALM_COLLECTIONS) return;
    heap.collect(); // all that waits is old now, and is not copied when it ends
    endLooks();
    done();
  };
  const endLooks = clock.background.every(LOOK_MS, look);
}

function v8Heap(): YoungHeap {
  let collect: Collector | undefined;
  return {
    used: () =>
      getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_used_size ?? 0,
    collect: () => {
      collect ??= collector();
      collect({ type: 'minor' });
    },
    observe: (onCollected) => {
      const look = (list: PerformanceObserverEntryList): void => {
        if (list.getEntries().some(isMinor)) onCollected();
      };
      new PerformanceObserver(look).observe({ entryTypes: ['gc'] });
    },
  };
}

/** Steps of other collections come with a full young generation. */
function isMinor(entry: object): boolean {
  const { detail } = entry as { readonly detail?: NodeGCPerformanceDetail };
  return detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR;
}

type Collector = (options?: { readonly type: 'minor' | 'major' }) => void;

/** The only way to V8's collector that needs no flag on the command line. */
export function collector(): Collector {
  setFlagsFromString('--expose-gc');
  const collect: Collector = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return collect;
}
