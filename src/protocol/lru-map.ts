// LRU maps: one with a bound, and one with a quota per owner. `lru-cache` would reserve memory for the bound of each map.

import { ANONYMOUS } from '../domain/account.ts';
import { LIMITS } from '../domain/limits.ts';

/** Holds at most `most` entries. Reading one is using it. */
export class LruMap<V> {
  readonly #most: number;
  readonly #forgotten: (value: V) => void;
  /** Longest unused first. */
  readonly #entries = new Map<string, V>();

  /** `forgotten` gets each evicted value, not those that were deleted or replaced. */
  constructor(most: number, forgotten: (value: V) => void = () => {}) {
    this.#most = most;
    this.#forgotten = forgotten;
  }

  /** How many there are. */
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
    while (this.#entries.size > this.#most) this.forgetOldest();
  }

  /** Evicts the least recently used entry. */
  forgetOldest(): void {
    for (const [oldest, forgotten] of this.#entries) {
      this.#entries.delete(oldest);
      this.#forgotten(forgotten);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** All values, least recently used first; iterating is not using. */
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
  readonly #forgotten: (value: V) => void;
  readonly #owners = new Map<string, LruMap<V>>();
  #size = 0;

  /**
   * At most `most` entries, of one owner LIMITS.ownerShare of them. Over its share the owner's least recently used entry is
   * evicted, over `most` that of the owner with most entries. While authentication is off all callers are one owner without
   * a share. `forgotten` gets each evicted value, not those that were replaced.
   */
  constructor(most: number, forgotten: (value: V) => void = () => {}) {
    this.#most = most;
    this.#share = Math.max(1, Math.floor(most * LIMITS.ownerShare));
    this.#forgotten = forgotten;
  }

  /** Number of entries of all owners. */
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
    const own = new LruMap<V>(most, this.#forgotten);
    this.#owners.set(ownerId, own);
    return own;
  }

  /** Looks at every owner, which only a full map has to. */
  #makeRoom(): void {
    let [richest, entries]: [string, LruMap<V> | undefined] = ['', undefined];
    for (const [ownerId, own] of this.#owners) {
      if (entries === undefined || own.size > entries.size) [richest, entries] = [ownerId, own];
    }
    if (entries === undefined) return;
    entries.forgetOldest();
    this.#size -= 1;
    if (entries.size === 0) this.#owners.delete(richest);
  }
}
