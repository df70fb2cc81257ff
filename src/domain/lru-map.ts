// LRU maps: one with a bound, and one with a quota per owner. `lru-cache` would reserve memory for the bound of each map.

import { ANONYMOUS } from './account.ts';
import { LIMITS } from './limits.ts';

/** Holds at most `most` entries. Reading one is using it. */
export class LruMap<V> {
  readonly #most: number;
  readonly #onEvicted: (value: V) => void;
  readonly #entries = new Map<string, V>();

  /** `onEvicted` gets each evicted value, not the deleted and replaced ones. */
  constructor(most: number, onEvicted: (value: V) => void = () => {}) {
    this.#most = most;
    this.#onEvicted = onEvicted;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.#renew(key, value);
    return value;
  }

  set(key: string, value: V): void {
    this.#renew(key, value);
    while (this.#entries.size > this.#most) this.evictOldest();
  }

  evictOldest(): void {
    for (const [key, value] of this.#entries) {
      this.#entries.delete(key);
      this.#onEvicted(value);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** All values, least recently used first; iteration does not count as use. */
  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  #renew(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
  }
}

/** An LRU map with a quota per owner: an owner with many entries does not evict those of others. Reading one is using it. */
export class QuotaLruMap<V> {
  readonly #most: number;
  readonly #share: number;
  readonly #onEvicted: (value: V) => void;
  readonly #owners = new Map<string, LruMap<V>>();
  #size = 0;

  /**
   * At most `most` entries, of one owner LIMITS.ownerShare of them. Over its share the owner's least recently used entry is
   * evicted, over `most` that of the owner with most entries. While authentication is off all callers are one owner without
   * a share. `onEvicted` gets each evicted value, not the replaced ones.
   */
  constructor(most: number, onEvicted: (value: V) => void = () => {}) {
    this.#most = most;
    this.#share = Math.max(1, Math.floor(most * LIMITS.ownerShare));
    this.#onEvicted = onEvicted;
  }

  get size(): number {
    return this.#size;
  }

  get(ownerId: string, key: string): V | undefined {
    return this.#owners.get(ownerId)?.get(key);
  }

  set(ownerId: string, key: string, value: V): void {
    const own = this.#owners.get(ownerId) ?? this.#begin(ownerId);
    const before = own.size;
    own.set(key, value);
    this.#size += own.size - before;
    if (this.#size > this.#most) this.#makeRoom();
  }

  #begin(ownerId: string): LruMap<V> {
    const most = ownerId === ANONYMOUS.id ? this.#most : this.#share;
    const own = new LruMap<V>(most, this.#onEvicted);
    this.#owners.set(ownerId, own);
    return own;
  }

  /** Compares all owners, which is necessary only when the map is full. */
  #makeRoom(): void {
    let largest: [ownerId: string, own: LruMap<V>] | undefined;
    for (const entry of this.#owners) if (entry[1].size > (largest?.[1].size ?? 0)) largest = entry;
    if (largest === undefined) return;
    const [ownerId, own] = largest;
    own.evictOldest();
    this.#size -= 1;
    if (own.size === 0) this.#owners.delete(ownerId);
  }
}
