// Bounded maps in memory.

import { LRUCache } from 'lru-cache';

/**
 * Holds at most `most` entries; the least recently used one makes room, and reading one is using it. `onEvicted`
 * gets the entry that made room. `sizeOf`: as how many entries one counts; default 1.
 */
export class LruMap<V extends NonNullable<unknown>> extends LRUCache<string, V> {
  constructor(
    most: number,
    onEvicted?: (value: V) => void,
    sizeOf: (value: V, key: string) => number = () => 1,
  ) {
    // Not `max`, which would reserve memory for all entries at once: 1 MB for 50,000.
    super({
      maxSize: most,
      sizeCalculation: sizeOf,
      ...(onEvicted === undefined
        ? {}
        : { dispose: (value: V, _: string, reason) => reason === 'evict' && onEvicted(value) }),
    });
  }
}
