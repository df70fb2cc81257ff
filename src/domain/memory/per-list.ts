// Results that are made once of a list and kept as long as the list: its tools for callers with some rights, its answer over
// REST.

import { LruMap } from './lru-map.ts';

/** The most results of one list that are remembered. */
const MAX_RESULTS = 16;

/** The results of lists. Requests at the same time wait for one result. */
export class PerList<V> {
  readonly #made = new WeakMap<object, LruMap<Promise<V>>>();

  /** `key` names the result, for example by the rights of a caller. */
  of(list: object, key: string, make: () => Promise<V>): Promise<V> {
    const known = this.#made.get(list) ?? new LruMap<Promise<V>>(MAX_RESULTS);
    const made = known.get(key) ?? make();
    known.set(key, made);
    this.#made.set(list, known);
    return made;
  }
}
