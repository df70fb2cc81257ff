// The room that kept lists have together, whichever template or caller they are of: when there is none left, the list that
// was used least recently goes. What is kept under which key is the business of the caches (list-cache.ts, aggregate-lists.ts).

import { LruMap } from '../lru-map.ts';

/** Bytes of JSON of all kept lists of one gateway. Values that were made of them come on top. */
const MOST_BYTES = 64 * 1024 * 1024;
/** What an entry takes besides its list, roughly: many small ones are no less than a few large ones. */
const ENTRY_BYTES = 1024;

interface Entry {
  readonly bytes: number;
  /** Takes it out of its cache. */
  readonly forget: () => void;
}

/** One budget for all caches of a gateway. */
export class ListMemory {
  readonly #mostBytes: number;
  /** Longest unused first. */
  readonly #entries = new Set<Entry>();
  #bytes = 0;

  constructor(mostBytes: number = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** Bytes that are taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Makes room for an entry; others may be forgotten for it. False when it is larger than all the room. */
  take(entry: Entry): boolean {
    if (entry.bytes > this.#mostBytes) return false;
    this.#entries.add(entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#mostBytes) break;
      this.release(oldest);
      oldest.forget();
    }
    return true;
  }

  /** It was used: others go before it. */
  use(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#entries.add(entry);
  }

  /** Gives back what an entry took. */
  release(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#bytes -= entry.bytes;
  }
}

/** One cache in that memory: at most `most` lists. Reading one is using it. */
export class KeptLists<V> {
  readonly #memory: ListMemory;
  readonly #kept: LruMap<Entry & { readonly value: V }>;

  constructor(most: number, memory: ListMemory) {
    this.#memory = memory;
    this.#kept = new LruMap(most, (entry) => memory.release(entry));
  }

  get(key: string): V | undefined {
    const entry = this.#kept.get(key);
    if (entry === undefined) return undefined;
    this.#memory.use(entry);
    return entry.value;
  }

  /** Keeps a list of so many bytes of JSON, if there can be room for it. */
  set(key: string, value: V, bytes: number): void {
    this.delete(key);
    const entry = { value, bytes: bytes + ENTRY_BYTES, forget: () => this.#kept.delete(key) };
    if (this.#memory.take(entry)) this.#kept.set(key, entry);
  }

  delete(key: string): void {
    const entry = this.#kept.get(key);
    if (entry === undefined) return;
    this.#kept.delete(key);
    this.#memory.release(entry);
  }

  clear(): void {
    for (const entry of [...this.#kept.values()]) {
      entry.forget();
      this.#memory.release(entry);
    }
  }

  /** All of them, longest unused first; looking through them is not using them. */
  *values(): IterableIterator<V> {
    for (const { value } of this.#kept.values()) yield value;
  }
}
