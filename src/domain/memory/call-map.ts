// A map whose entries live as long as one call. When a Map or Set with short-lived entries is rehashed, V8
// links the old table to the new one. Once a table is in the old generation, each later table, with every call
// that was in it, survives until a full collection: minor collections take ten times as long, and a call costs up
// to twice as much. This map and linked-set.ts make no such chain. Source: ADR 79.

type Id = string | number | bigint;

/** The most slots of a CallMap; each takes 16 bytes. */
const MAX_SLOTS = 1_024;

/** A map whose entries live as long as one call, by the id of the call. */
export class CallMap<V> {
  /**
   * The entries whose ids are numbers, each in the slot of the last bits of its id: ids of calls count up, so
   * that those under way hardly ever need the same slot. Node adds and deletes other properties of numbers ten
   * times as slowly.
   */
  #ids: (number | undefined)[] = [];
  #values: (V | undefined)[] = [];
  /** All other entries. An object without a prototype has no such links. `entryKeyOf` keeps 1, 1n and "1" apart. */
  #others: Record<string | number, V> | undefined;
  size = 0;

  get(id: Id): V | undefined {
    const slot = this.#slotOf(id);
    return slot === undefined ? this.#others?.[entryKeyOf(id)] : this.#values[slot];
  }

  has(id: Id): boolean {
    return this.#slotOf(id) !== undefined || (this.#others !== undefined && entryKeyOf(id) in this.#others);
  }

  set(id: Id, value: V): void {
    const isNew = !this.has(id);
    if (isNew) this.size += 1;
    const slot = this.#slotOf(id) ?? (isNew ? this.#freeSlotFor(id) : undefined);
    if (slot === undefined) {
      this.#others ??= Object.create(null) as Record<string | number, V>;
      this.#others[entryKeyOf(id)] = value;
      return;
    }
    this.#ids[slot] = id as number;
    this.#values[slot] = value;
  }

  delete(id: Id): boolean {
    const slot = this.#slotOf(id);
    if (slot !== undefined) {
      this.#ids[slot] = undefined;
      this.#values[slot] = undefined;
    } else {
      const key = entryKeyOf(id);
      if (this.#others === undefined || !(key in this.#others)) return false;
      delete this.#others[key];
    }
    this.size -= 1;
    return true;
  }

  /** The present values: those with numeric ids in their order, then the others in order of insertion. */
  values(): V[] {
    const ids = this.#ids.filter((id) => id !== undefined).sort((a, b) => a - b);
    return [...ids.map((id) => this.get(id) as V), ...Object.values(this.#others ?? {})];
  }

  /** The slot of a present entry. */
  #slotOf(id: Id): number | undefined {
    if (typeof id !== 'number') return undefined;
    const slot = id & (this.#ids.length - 1);
    return this.#ids[slot] === id ? slot : undefined;
  }

  /** More slots are made until the one of this id is free. Undefined for an id that gets none. */
  #freeSlotFor(id: Id): number | undefined {
    if (typeof id !== 'number' || !Number.isSafeInteger(id)) return undefined;
    while (this.#ids.length === 0 || this.#ids[id & (this.#ids.length - 1)] !== undefined) {
      if (this.#ids.length >= MAX_SLOTS) return undefined;
      this.#double();
    }
    return id & (this.#ids.length - 1);
  }

  /** Two entries with different slots stay apart. */
  #double(): void {
    const [ids, values] = [this.#ids, this.#values];
    const count = Math.max(4, 2 * ids.length);
    this.#ids = new Array(count).fill(undefined);
    this.#values = new Array(count).fill(undefined);
    for (const [slot, id] of ids.entries()) {
      if (id === undefined) continue;
      this.#ids[id & (count - 1)] = id;
      this.#values[id & (count - 1)] = values[slot];
    }
  }
}

function entryKeyOf(id: Id): string | number {
  if (typeof id === 'number') return id;
  return typeof id === 'string' ? `:${id}` : `${id}n`;
}
