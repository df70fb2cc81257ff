// A memory for a bounded number of keys, which takes room only for those that it has. What is in it, and how long that
// is true, is the business of who keeps it.

import { LRUCache } from 'lru-cache';

/** What is in memory, by key. */
export type RecentlyUsed<V extends object | true> = LRUCache<string, V>;

/**
 * Keeps `most` entries; beyond that, the one that was used longest ago is forgotten, of which `forgotten` hears. Reading
 * and writing are uses. The library's `max` would set aside room for all of them at once: 1 MB for 50,000, in every
 * gateway, also in one that knows nobody.
 */
export function recentlyUsed<V extends object | true>(
  most: number,
  forgotten?: (key: string) => void,
): RecentlyUsed<V> {
  return new LRUCache({
    maxSize: most,
    sizeCalculation: () => 1,
    ...(forgotten === undefined ? {} : { dispose: (_value: V, key: string) => forgotten(key) }),
  });
}
