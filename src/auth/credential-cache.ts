// The cache of verified callers: their identities, and the times at which these are verified again. Source: ADR 16, ADR 299.

import { type Rights, rightsBytes } from '../domain/accounts/rights.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';

export interface Verified {
  /** Time of the query, in ms of a monotonic clock, as all times here. */
  readonly verifiedAtMs: number;
  /** The last time at which the store had not changed; set after a change of it. */
  staleSinceMs: number | undefined;
}

/** The longest age without a query, so that changes of other nodes take effect even if none is reported. */
export const MAX_UNCHECKED_MS = 10_000;
/** The longest use of an entry after the last confirmation by the store. */
export const MAX_UNAVAILABLE_MS = 15 * 60_000;
export const MAX_ENTRIES = 10_000;

/** The verified callers. A change of the store makes all of them stale at once. */
export class CredentialCache<V extends Verified> {
  readonly entries: LruMap<V>;
  #isUnavailable = false;
  #lastAnswerMs: number | undefined;

  /** `sizeOf`: as how many entries one counts. */
  constructor(sizeOf?: (entry: V) => number) {
    this.entries = new LruMap<V>(MAX_ENTRIES, undefined, sizeOf);
  }

  /**
   * Handles a change of the store. True when all entries became stale: after a change, and after the first answer, which does not
   * confirm earlier verifications.
   */
  onStoreChange(change: RevisionChange['kind'], nowMs: number): boolean {
    this.#isUnavailable = change === 'away';
    const isChange = change === 'changed' || (change === 'answered' && this.#lastAnswerMs === undefined);
    if (isChange) for (const entry of this.entries.values()) entry.staleSinceMs = this.#confirmedAtMs(entry);
    if (!this.#isUnavailable) this.#lastAnswerMs = nowMs;
    return isChange;
  }

  /** `fresh`: usable. `stale`: to be verified, usable without an answer. `expired`: too old without an answer. */
  freshnessOf(entry: V, nowMs: number): 'fresh' | 'stale' | 'expired' {
    const ageMs = nowMs - this.#confirmedAtMs(entry);
    if (this.#isUnavailable) return ageMs > MAX_UNAVAILABLE_MS ? 'expired' : 'fresh';
    return entry.staleSinceMs === undefined && ageMs <= MAX_UNCHECKED_MS ? 'fresh' : 'stale';
  }

  /**
   * True when the store has not answered for so long that entries are no longer fresh: this node stood still, or cannot
   * know yet.
   */
  isSilent(nowMs: number): boolean {
    return nowMs - (this.#lastAnswerMs ?? nowMs) > MAX_UNCHECKED_MS;
  }

  /** Time at which the store last confirmed the entry. */
  #confirmedAtMs({ staleSinceMs, verifiedAtMs }: V): number {
    return staleSinceMs ?? Math.max(verifiedAtMs, this.#lastAnswerMs ?? 0);
  }
}

/** The cache takes 128 MiB at most: a caller with long lists of rights counts several times. */
const ENTRY_BYTES = 13_422;

/** The number of entries of the cache for which a caller counts. */
export function entryCountOf({ principal }: { readonly principal: Rights }): number {
  return 1 + Math.floor(rightsBytes(principal) / ENTRY_BYTES);
}
