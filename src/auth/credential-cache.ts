// Knows how far what was verified may be believed without asking the store again, from what is heard of the store.
// Times come in with every call, so there are no timers here. The bounds are those of decisions, "API key" and "Database away".

import type { RevisionChange } from '../persistence/revision-watch.ts';

/** What is heard of the store. */
export type StoreChange = RevisionChange['kind'];

/** A verified thing as far as its age matters. */
export interface Verified {
  /** When the store was asked, in ms. */
  readonly verifiedAtMs: number;
  /** Set when the store changed afterwards: the last moment at which nothing had changed. */
  staleSinceMs: number | undefined;
  /** Set when a look at the store failed: not before this moment again. */
  retryAtMs: number;
}

/** `believe`: use it. `verify`: ask the store; if it does not answer, use it. `refuse`: too old, and nobody to ask. */
export type Verdict = 'believe' | 'verify' | 'refuse';

/** Other nodes' changes are in force after this at the latest, also when no news comes at all. */
const SILENCE_MS = 10_000;
/** What was verified is served this long after the store was last known to agree. */
const AWAY_LONGEST_MS = 15 * 60_000;
const RETRY_MS = 1_000;

export class CredentialCache {
  #isAway = false;
  #hasAnswered = false;
  #lastHeardMs: number;

  constructor(nowMs: number) {
    this.#lastHeardMs = nowMs;
  }

  /**
   * True for news after which everything verified is to be verified again. To be asked once about each piece, before it
   * is heard. The first answer says nothing about what was verified before: a change may lie in between.
   */
  isChange(news: StoreChange): boolean {
    const isFirstAnswer = news === 'answered' && !this.#hasAnswered;
    this.#hasAnswered ||= news !== 'away';
    return news === 'changed' || isFirstAnswer;
  }

  hear(news: StoreChange, nowMs: number): void {
    this.#isAway = news === 'away';
    if (!this.#isAway) this.#lastHeardMs = nowMs;
  }

  /** To be called for everything verified when the store changed, before `hear('changed')`. */
  markStale(verified: Verified): void {
    verified.staleSinceMs = this.#agreedAtMs(verified);
  }

  judge(verified: Verified, nowMs: number): Verdict {
    // A clock that was set back makes an age negative; its size counts, so that nothing is believed for longer.
    const ageMs = Math.abs(nowMs - this.#agreedAtMs(verified));
    const isCurrent = verified.staleSinceMs === undefined && ageMs <= SILENCE_MS;
    if (isCurrent && !this.#isAway) return 'believe';
    const isUnasked = this.#isAway || nowMs < verified.retryAtMs;
    if (ageMs > AWAY_LONGEST_MS) return isUnasked ? 'refuse' : 'verify';
    return isUnasked ? 'believe' : 'verify';
  }

  /** The store did not answer when this was to be verified again: true when it may be used all the same. */
  mayServe(verified: Verified, nowMs: number): boolean {
    verified.retryAtMs = nowMs + RETRY_MS;
    return Math.abs(nowMs - this.#agreedAtMs(verified)) <= AWAY_LONGEST_MS;
  }

  /** When the store last agreed with it. */
  #agreedAtMs({ staleSinceMs, verifiedAtMs }: Verified): number {
    return staleSinceMs ?? Math.max(verifiedAtMs, this.#lastHeardMs);
  }
}
