// Counts the requests that get no entry in the audit log of their own, mostly wrong logins of unknown callers, until an entry
// says how many they were.

import type { NewEntry } from '../../domain/events/audit-entries.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';

/** The most pairs of action and address that are counted. */
const MAX_COUNTED = 1_000;

/** Requests without an entry of their own, counted by action and address. A count that is taken is forgotten. */
export class SuppressedRequests {
  readonly #counts = new LruMap<NewEntry>(MAX_COUNTED, (evicted) => {
    const others = { ...evicted, address: undefined };
    this.#others.set(evicted.action, plus(this.#others.get(evicted.action), others, evicted.suppressed));
  });
  /** The requests from addresses that made room for others, by action. */
  readonly #others = new Map<string, NewEntry>();

  add(request: NewEntry): void {
    const { requestId: _, ...summary } = request;
    const key = actionAndAddress(request);
    this.#counts.set(key, plus(this.#counts.get(key), { ...summary, subject: '' }, 1));
  }

  /** The entry with the number of its action and address, and an entry for those of its action that have no address any more. */
  takeWith(entry: NewEntry): NewEntry[] {
    const { action } = entry;
    const key = actionAndAddress(entry);
    const suppressed = this.#counts.get(key)?.suppressed;
    const others = this.#others.get(action);
    this.#counts.delete(key);
    this.#others.delete(action);
    return [...(others === undefined ? [] : [others]), { ...entry, suppressed }];
  }

  /** An entry for each action and address. */
  takeAll(): NewEntry[] {
    const all = [...this.#others.values(), ...this.#counts.values()];
    this.#others.clear();
    this.#counts.clear();
    return all;
  }
}

function plus(before: NewEntry | undefined, latest: NewEntry, count = 0): NewEntry {
  return { ...latest, suppressed: (before?.suppressed ?? 0) + count };
}

function actionAndAddress({ action, address = '' }: NewEntry): string {
  return `${action} ${address}`;
}
