// A map whose entries live as long as one call. When a Map or Set with short-lived entries is rehashed, V8
// links the old table to the new one. Once a table is in the old generation, each later table, with every call
// that was in it, survives until a full collection: minor collections take ten times as long, and a call costs up
// to twice as much. This map and linked-set.ts make no such chain. Source: ADR 79.

type Id = string | number | bigint;

/** Most places of a CallMap; each takes 16 bytes. */
const MAX_PLACES = 1_024;

/** A map whose entries live as long as one call, by the id of the call. */
export class CallMap<V> {
  /**
   * The entries whose ids are numbers, each in the place of the last bits of its id: ids of calls count up, so
   * that those under way hardly ever need the same place. Node adds and deletes other properties of numbers ten
   * times as slowly.
   */
  #ids: (number | undefined)[] = [];
  #values: (V | undefined)[] = [];
  /** All other entries. An object without a prototype has no such links. `entryKeyOf` keeps 1, 1n and "1" apart. */
  #others: Record<string | number, V> | undefined;
  size = 0;

  get(id: Id): V | undefined {
    const place = this.#placeOf(id);
    return place === undefined ? this.#others?.[entryKeyOf(id)] : this.#values[place];
  }

  has(id: Id): boolean {
    return this.#placeOf(id) !== undefined || (this.#others !== undefined && entryKeyOf(id) in this.#others);
  }

  set(id: Id, value: V): void {
    const isNew = !this.has(id);
    if (isNew) this.size += 1;
    const place = this.#placeOf(id) ?? (isNew ? this.#freePlaceFor(id) : undefined);
    if (place === undefined) {
      this.#others ??= Object.create(null) as Record<string | number, V>;
      this.#others[entryKeyOf(id)] = value;
      return;
    }
    this.#ids[place] = id as number;
    this.#values[place] = value;
  }

  delete(id: Id): boolean {
    const place = this.#placeOf(id);
    if (place !== undefined) {
      this.#ids[place] = undefined;
      this.#values[place] = undefined;
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

  /** The place of a present entry. */
  #placeOf(id: Id): number | undefined {
    if (typeof id !== 'number') return undefined;
    const place = id & (this.#ids.length - 1);
    return this.#ids[place] === id ? place : undefined;
  }

  /** More places are made until the one of this id is free. Undefined for an id that gets none. */
  #freePlaceFor(id: Id): number | undefined {
    if (typeof id !== 'number' || !Number.isSafeInteger(id)) return undefined;
    while (this.#ids.length === 0 || this.#ids[id & (this.#ids.length - 1)] !== undefined) {
      if (this.#ids.length >= MAX_PLACES) return undefined;
      this.#double();
    }
    return id & (this.#ids.length - 1);
  }

  /** Two entries with different places stay apart. */
  #double(): void {
    const [ids, values] = [this.#ids, this.#values];
    const count = Math.max(4, 2 * ids.length);
    this.#ids = new Array(count).fill(undefined);
    this.#values = new Array(count).fill(undefined);
    for (const [place, id] of ids.entries()) {
      if (id === undefined) continue;
      this.#ids[id & (count - 1)] = id;
      this.#values[id & (count - 1)] = values[place];
    }
  }
}

function entryKeyOf(id: Id): string | number {
  if (typeof id === 'number') return id;
  return typeof id === 'string' ? `:${id}` : `${id}n`;
}
