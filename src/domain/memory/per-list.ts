// What is made once of a list, as long as the list is there: its tools for callers with some rights, its answer over REST.

import { LruMap } from './lru-map.ts';

/** Of one list, how many results are remembered. */
const MOST = 16;

/** Requests at the same time wait for one result. */
export class PerList<V> {
  readonly #made = new WeakMap<object, LruMap<Promise<V>>>();

  /** `key`: for what the result is, such as the rights of a caller. */
  of(list: object, key: string, make: () => Promise<V>): Promise<V> {
    const known = this.#made.get(list) ?? new LruMap<Promise<V>>(MOST);
    const made = known.get(key) ?? make();
    known.set(key, made);
    this.#made.set(list, known);
    return made;
  }
}
