// Bounds the queries for API keys that this node has not verified yet: random keys, sent without end, must not hold up the other
// work of the database, nor the verification of keys of other callers. Source: ADR 92.

import { invalidCredentials, tooManyKeys } from '../../domain/errors/account-errors.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { WindowCounter } from '../../domain/memory/window-counter.ts';
import { networkOf } from '../../net/network-of.ts';
import type { AccountStore } from '../../persistence/store.ts';
import { FairQueue } from '../limits/fair-queue.ts';

/** Other queries wait for at most so many look-ups. */
const MAX_LOOKUPS = 8;
/** The most look-ups that wait: after a restart all callers are verified again. */
const MAX_WAITING = 1_000;
const RETRY_AFTER_SECONDS = 1;

/** Wrong keys of one address in the window; further ids are looked up in memory. */
const MAX_WRONG_KEYS = 100;
const WINDOW_SECONDS = 10;
const MAX_ADDRESSES = 10_000;
/** Age of the list of ids in memory: the longest time until a key of another node is found. */
const MAX_LIST_MS = 10_000;
const MAX_IDS = 10_000;

/** The same text for unknown, revoked and wrong keys, so that it does not reveal which ids exist. */
export const WRONG_KEY = 'The API key is not valid';

/**
 * The queue of the look-ups of unverified API keys. An address that sent many wrong keys gets a query only for ids that
 * exist.
 */
export class KeyLookups {
  readonly #accounts: Pick<AccountStore, 'apiKeyIds'>;
  readonly #now: () => number;
  readonly #queue: FairQueue;
  readonly #wrong = new WindowCounter({ windowSeconds: WINDOW_SECONDS, keys: MAX_ADDRESSES });
  /** Ids of keys that were valid, or were created on this node. */
  readonly #known = new LruMap<true>(MAX_IDS);
  #list: { readonly fromMs: number; readonly ids: Promise<ReadonlySet<string>> } | undefined;

  /** `now`: milliseconds of a clock that is never set. */
  constructor(accounts: Pick<AccountStore, 'apiKeyIds'>, now: () => number) {
    this.#accounts = accounts;
    this.#now = now;
    const refusal = () => tooManyKeys(RETRY_AFTER_SECONDS);
    this.#queue = new FairQueue({ atOnce: MAX_LOOKUPS, waiting: MAX_WAITING, now, refusal });
  }

  /** A key was created on this node. */
  created(id: string): void {
    this.#known.set(id, true);
  }

  /** Runs the verification of a key in the share of its address. Throws INVALID_CREDENTIALS, TOO_MANY_ATTEMPTS. */
  async verify<T>(id: string, address: string, verification: () => Promise<T>): Promise<T> {
    const network = networkOf(address);
    const isKnown = this.#known.has(id);
    const wrong = this.#wrong.add(network, this.#nowMs(), 0).count;
    if (!isKnown && wrong >= MAX_WRONG_KEYS && !(await this.#exists(id))) throw invalidCredentials(WRONG_KEY);
    try {
      const verified = await this.#queue.run({ shares: [network], isKnown }, verification);
      this.#known.set(id, true);
      return verified;
    } catch (thrown) {
      if (hasCode(thrown, 'INVALID_CREDENTIALS')) this.#wrong.add(network, this.#nowMs());
      throw thrown;
    }
  }

  async #exists(id: string): Promise<boolean> {
    const nowMs = this.#now();
    if (this.#list === undefined || nowMs - this.#list.fromMs >= MAX_LIST_MS) {
      const ids = this.#accounts.apiKeyIds().then((keys) => new Set(keys.map(({ id }) => id)));
      const list = { fromMs: nowMs, ids };
      this.#list = list;
      ids.catch(() => {
        // The requests that wait for the list get the error; the next one reads it again.
        if (this.#list === list) this.#list = undefined;
      });
    }
    return (await this.#list.ids).has(id);
  }

  #nowMs(): number {
    return Math.floor(this.#now());
  }
}
