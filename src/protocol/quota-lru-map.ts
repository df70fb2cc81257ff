// A map that forgets, of which each owner has his part: who keeps much makes room, so that what others keep is not
// forgotten because of him.

import { ANONYMOUS } from '../domain/account.ts';
import { LIMITS } from '../domain/limits.ts';
import { LruMap } from './lru-map.ts';

/** Keeps entries by owner and key. Reading one is using it. */
export class QuotaLruMap<V> {
  readonly #most: number;
  readonly #share: number;
  readonly #forgotten: (value: V) => void;
  readonly #owners = new Map<string, LruMap<V>>();
  #size = 0;

  /**
   * At most `most` entries, of one owner LIMITS.ownerShare of them: over that his own is forgotten that was not used for
   * longest, over `most` that of whoever has most. While authentication is off all callers are one owner, who has no
   * share. `forgotten` hears of what made room, not of what was replaced.
   */
  constructor(most: number, forgotten: (value: V) => void = () => {}) {
    this.#most = most;
    this.#share = Math.max(1, Math.floor(most * LIMITS.ownerShare));
    this.#forgotten = forgotten;
  }

  /** How many there are, of all owners. */
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

  /** Looks at every owner: there are no more of them than entries, and only a full map has to. */
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
