// A bounded LRU map. `lru-cache` would reserve memory for the bound of each map.

/** Holds at most `most` entries. Reading one is using it. */
export class LruMap<V> {
  readonly #most: number;
  readonly #entries = new Map<string, V>();

  constructor(most: number) {
    this.#most = most;
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
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) break;
      this.#entries.delete(oldest);
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
