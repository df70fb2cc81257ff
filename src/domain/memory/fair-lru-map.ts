// A map that is bounded by bytes, and that several owners fill: an owner that reads lists without end takes nothing from others.

import { UserAmounts } from './user-shares.ts';

/** The approximate memory of an entry besides its value, in bytes. */
const ENTRY_BYTES = 1024;

interface Entry<V> {
  readonly ownerId: string;
  readonly bytes: number;
  readonly value: V;
}

/** A map of values with owners. To make room, an owner that holds its share or more loses its least recently used value. */
export class FairLruMap<V extends { readonly bytes: number }> {
  readonly #mostBytes: number;
  readonly #held = new UserAmounts();
  /** The least recently used one first. */
  readonly #entries = new Map<string, Entry<V>>();

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(ownerId: string, key: string, value: V): void {
    this.#delete(key);
    const bytes = value.bytes + ENTRY_BYTES;
    this.#entries.set(key, { ownerId, bytes, value });
    this.#held.add(ownerId, bytes);
    while (this.#held.total > this.#mostBytes) this.#makeRoom();
  }

  #makeRoom(): void {
    const share = this.#held.total / this.#held.size;
    for (const [key, { ownerId }] of this.#entries) {
      if (this.#held.held(ownerId) < share) continue;
      this.#delete(key);
      return;
    }
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#held.release(entry.ownerId, entry.bytes);
  }
}
