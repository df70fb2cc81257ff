// Collections whose entries live as long as one call. When a Map or Set with short-lived entries is rehashed, V8 links the old table
// to the new one. Once a table is in the old generation, each later table, with every call that was in it, survives until a full
// collection: minor collections take ten times as long, and a call costs up to twice as much. These two collections make no such
// chain. Source: ADR 79.

type Id = string | number | bigint;

export class CallMap<V> {
  // An object without a prototype has no such links. `entryKeyOf` keeps 1, 1n and "1" apart.
  readonly #entries: Record<string | number, V> = Object.create(null);
  size = 0;

  get(id: Id): V | undefined {
    return this.#entries[entryKeyOf(id)];
  }

  has(id: Id): boolean {
    return entryKeyOf(id) in this.#entries;
  }

  set(id: Id, value: V): void {
    const key = entryKeyOf(id);
    if (!(key in this.#entries)) this.size += 1;
    this.#entries[key] = value;
  }

  delete(id: Id): boolean {
    const key = entryKeyOf(id);
    if (!(key in this.#entries)) return false;
    delete this.#entries[key];
    this.size -= 1;
    return true;
  }

  /** The present values: those with numeric ids in their order, then the others in order of insertion. */
  values(): V[] {
    return Object.values(this.#entries);
  }
}

function entryKeyOf(id: Id): string | number {
  if (typeof id === 'number') return id;
  return typeof id === 'string' ? `:${id}` : `${id}n`;
}

/** An object that can be in one LinkedSet at a time. */
export interface Linked {
  /** Its neighbours, while it is in a set. Used by LinkedSet only. */
  links?: Links | undefined;
}

interface Links {
  before: Linked | undefined;
  after: Linked | undefined;
}

export class LinkedSet<T extends Linked> {
  first: T | undefined;
  #last: T | undefined;
  size = 0;

  has(item: T): boolean {
    return item.links !== undefined;
  }

  add(item: T): void {
    if (item.links !== undefined) return;
    const last = this.#last;
    item.links = { before: last, after: undefined };
    if (last?.links === undefined) this.first = item;
    else last.links.after = item;
    this.#last = item;
    this.size += 1;
  }

  delete(item: T): boolean {
    const { links } = item;
    if (links === undefined) return false;
    // Only this set sets the neighbours, so they are of type T.
    const before = links.before as T | undefined;
    const after = links.after as T | undefined;
    item.links = undefined;
    links.before = undefined;
    links.after = undefined;
    if (before?.links === undefined) this.first = after;
    else before.links.after = after;
    if (after?.links === undefined) this.#last = before;
    else after.links.before = before;
    this.size -= 1;
    return true;
  }

  clear(): void {
    for (const item of this.values()) this.delete(item);
  }

  values(): T[] {
    const items: T[] = [];
    for (let item = this.first; item !== undefined; item = item.links?.after as T | undefined)
      items.push(item);
    return items;
  }
}
