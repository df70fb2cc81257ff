// A bounded cache of verified credentials or accounts, and how long an entry may be used without asking the store again.
// Times are parameters, so there are no timers here. Source: ADR 16.

import { LRUCache } from 'lru-cache';
import type { RevisionChange } from '../persistence/revision-watch.ts';

export type StoreChange = RevisionChange['kind'];

/** The age of an entry. */
export interface Verified {
  /** When the store was asked, in ms. */
  readonly verifiedAtMs: number;
  /** Set when the store changed afterwards: the last time at which nothing had changed. */
  staleSinceMs: number | undefined;
  /** Set when the store did not answer: not asked again before this time. */
  retryAtMs: number;
}

/** `fresh`: use it. `stale`: ask the store; if it does not answer, use it. `expired`: too old, and the store does not answer. */
export type Verdict = 'fresh' | 'stale' | 'expired';

/** The changes of other nodes are in force after this at the latest, also without any change of the store. */
const SILENCE_MS = 10_000;
/** An entry is served this long after the store was last known to agree. */
const AWAY_LONGEST_MS = 15 * 60_000;
const RETRY_MS = 1_000;
const ENTRIES = 10_000;

export class CredentialCache<V extends Verified> {
  /** The least recently used entry is dropped first. `maxSize` and not `max`, which reserves memory for all entries at once. */
  readonly entries = new LRUCache<string, V>({ maxSize: ENTRIES, sizeCalculation: () => 1 });
  #isAway = false;
  #hasAnswered = false;
  #lastHeardMs: number;

  constructor(nowMs: number) {
    this.#lastHeardMs = nowMs;
  }

  /**
   * Records a change of the store. True when all entries became stale: after a change, and with the first answer, which says
   * nothing about what was verified before.
   */
  onStoreChange(change: StoreChange, nowMs: number): boolean {
    const isFirstAnswer = change === 'answered' && !this.#hasAnswered;
    const isChange = change === 'changed' || isFirstAnswer;
    if (isChange) for (const entry of this.entries.values()) entry.staleSinceMs = this.#agreedAtMs(entry);
    this.#hasAnswered ||= change !== 'away';
    this.#isAway = change === 'away';
    if (!this.#isAway) this.#lastHeardMs = nowMs;
    return isChange;
  }

  judge(entry: V, nowMs: number): Verdict {
    // A clock that was set back makes an age negative; its absolute value counts, so that no entry is used for longer.
    const ageMs = Math.abs(nowMs - this.#agreedAtMs(entry));
    const isCurrent = entry.staleSinceMs === undefined && ageMs <= SILENCE_MS;
    if (isCurrent && !this.#isAway) return 'fresh';
    const isUnasked = this.#isAway || nowMs < entry.retryAtMs;
    if (ageMs > AWAY_LONGEST_MS) return isUnasked ? 'expired' : 'stale';
    return isUnasked ? 'fresh' : 'stale';
  }

  /** To be called when the store did not answer for a stale entry: true when the entry may be used all the same. */
  mayServe(entry: V, nowMs: number): boolean {
    entry.retryAtMs = nowMs + RETRY_MS;
    return Math.abs(nowMs - this.#agreedAtMs(entry)) <= AWAY_LONGEST_MS;
  }

  /** When the store last agreed with it. */
  #agreedAtMs({ staleSinceMs, verifiedAtMs }: V): number {
    return staleSinceMs ?? Math.max(verifiedAtMs, this.#lastHeardMs);
  }
}
