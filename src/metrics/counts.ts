// Counts in maps, and the counts of the HTTP answers of an app: by status, and by error code. Both are bounded by their catalogues.

import type { ErrorCode } from '../domain/errors.ts';

/** Adds one to the count of a key. */
export function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** The value of a key, made at its first use. */
export function getOrInsert<K, V>(values: Map<K, V>, key: K, make: () => V): V {
  let value = values.get(key);
  if (value === undefined) {
    value = make();
    values.set(key, value);
  }
  return value;
}

export class HttpCounts {
  readonly statuses = new Map<number, number>();
  readonly errors = new Map<ErrorCode, number>();

  count(status: number, code: ErrorCode | undefined): void {
    increment(this.statuses, status);
    if (code !== undefined) increment(this.errors, code);
  }
}
