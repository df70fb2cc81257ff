// A map that forgets: what was not used for longest makes room for what is new. How long anything is true is the
// business of who keeps it.

/** Keeps at most `most` entries. Reading one is using it. */
export class LruMap<V> {
  readonly #most: number;
  readonly #forgotten: (value: V) => void;
  /** Longest unused first. */
  readonly #entries = new Map<string, V>();

  /** `forgotten` hears of what made room; not of what was removed or replaced. */
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

  /** Makes room: what was not used for longest goes. */
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

  /** All of them, longest unused first; looking through them is not using them. */
  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  #renew(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
  }
}
