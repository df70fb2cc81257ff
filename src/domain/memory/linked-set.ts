// A set whose entries live as long as one call, and know their neighbours: there is no table that could be chained to
// an older one. Source: ADR 79.

/** An object that can be in one LinkedSet at a time. */
export interface Linked {
  /** The neighbours of the entry, while it is in a set. Used by LinkedSet only. */
  links?: Links | undefined;
}

interface Links {
  before: Linked | undefined;
  after: Linked | undefined;
}

/** A set whose entries live as long as one call, in the order in which they were added. */
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
