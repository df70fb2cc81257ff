// Limits password guessing: counts failures per user and address, and per address.

import { hash } from 'node:crypto';
import { usernameKey } from '../../domain/accounts/account.ts';
import { tooManyAttempts } from '../../domain/errors/account-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Window, WindowCounter } from '../../domain/memory/window-counter.ts';
import { networkOf } from '../../net/network-of.ts';

/** Failed attempts in one minute: 10 per user and address; 60 per address (IPv6: /64 network), which many users may share. */
const WINDOW_SECONDS = 60;
const PER_USER_AND_ADDRESS = 10;
const PER_ADDRESS = 60;
/** The most counted pairs, and the most counted addresses. */
const MAX_KEYS = 20_000;
const windows = () => new WindowCounter({ windowSeconds: WINDOW_SECONDS, keys: MAX_KEYS });
/** Attempts that wait for the counts of other nodes at a time. Over it a node admits its share of the limits. */
const MAX_ASKING_ATTEMPTS = 64;
/** A window of another node that ends within this time is not joined: a window of nearly no length would bound nothing. In ms. */
const MIN_JOINED_MS = 1_000;

export interface CountedAttempt {
  readonly network: string;
  /** Whether the user has logged in from this address before. */
  readonly isKnown: boolean;
  /**
   * The answer to wrong credentials, set when the address is over its limit. An unknown user and a wrong password
   * then get the same answer as a refused attempt.
   */
  readonly refusal: GatewayError | undefined;
  /** `wrong` stays counted; `unchecked`: the password was not compared. */
  settle(result: 'right' | 'wrong' | 'unchecked'): void;
}

/** The counters of an attempt to log in. Hashes, because a name may have any length, or be a password in the wrong field. */
export interface LoginKeys {
  /** Counter of the user at this address. */
  readonly pair: string;
  /** Counter of the address. */
  readonly network: string;
}

/** The counts of one node for these keys in its present windows. */
export interface LoginCounts {
  readonly pair: Window;
  readonly network: Window;
  /** Whether an attempt of the pair failed there. */
  readonly hasFailed: boolean;
}

/** The other nodes. Its promises are bounded in time and never reject. */
interface LoginPeers {
  /** The lives of this node, first, and of all other members. */
  lives(): readonly string[];
  /** Resolves with undefined when there is no answer; the others then admit their shares of the limits. */
  ask(life: string, keys: LoginKeys): Promise<LoginCounts | undefined>;
}

interface ThrottledAttempt {
  readonly username: string;
  readonly address: string;
}

/**
 * Admits or refuses attempts to log in. An attempt is counted before it is checked, so that concurrent attempts cannot exceed the
 * limit; a success is subtracted again. Where there are other nodes, each counts its own attempts, then adds the counts of the
 * others.
 */
export class LoginThrottle {
  readonly #now: () => number;
  /** Attempts of a user from an address that failed or are being checked. */
  readonly #pairs = windows();
  /** The failed attempts of each pair. */
  readonly #failedPairs = windows();
  readonly #addresses = windows();
  /** Pairs with an earlier success. */
  readonly #known = new LruMap<true>(MAX_KEYS);
  #peers: LoginPeers | undefined;
  #asking = 0;

  /** `now`: ms of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Adds the counts of these nodes from now on. */
  shareIn(peers: LoginPeers): void {
    this.#peers = peers;
  }

  /** The counts of this node, for another one. */
  countsOf({ pair, network }: LoginKeys): LoginCounts {
    const nowMs = this.#now();
    const hasFailed = this.#failedPairs.add(pair, nowMs, 0).count > 0;
    return {
      pair: this.#pairs.add(pair, nowMs, 0),
      network: this.#addresses.add(network, nowMs, 0),
      hasFailed,
    };
  }

  /**
   * Counts the attempt, and judges it by the attempts at all nodes. Throws TOO_MANY_ATTEMPTS; a refused attempt is not
   * counted. An address over its limit may still try users that did not fail from there.
   */
  async admit(attempt: ThrottledAttempt): Promise<CountedAttempt> {
    const taken = this.#take(attempt);
    const alone = this.#judge(taken, []);
    const others = this.#peers?.lives().slice(1) ?? [];
    if (this.#peers === undefined || others.length === 0) return alone;
    // Many attempts at once must not turn into any number of questions.
    const counts = this.#asking < MAX_ASKING_ATTEMPTS ? await this.#ask(taken, this.#peers, others) : [];
    return this.#judge(taken, counts, (counts.length + 1) / (others.length + 1));
  }

  #take({ username, address }: ThrottledAttempt): Taken {
    const nowMs = this.#now();
    const network = networkOf(address);
    const keys = { pair: digest(`${network} ${usernameKey(username)}`), network: digest(network) };
    return {
      keys,
      network,
      pair: new Counted(this.#pairs, keys.pair, nowMs, PER_USER_AND_ADDRESS),
      address: new Counted(this.#addresses, keys.network, nowMs, PER_ADDRESS),
    };
  }

  async #ask({ keys, pair, address }: Taken, peers: LoginPeers, others: readonly string[]) {
    const askedAtMs = this.#now();
    this.#asking += 1;
    const answers = await Promise.all(others.map((life) => peers.ask(life, keys)));
    this.#asking -= 1;
    const counts = answers.filter((each) => each !== undefined);
    for (const each of counts) {
      pair.join(each.pair, askedAtMs);
      address.join(each.network, askedAtMs);
    }
    return counts;
  }

  /** Judges a counted attempt. `share`: the part of the limits for the nodes whose counts are known. */
  #judge({ keys, network, pair, address }: Taken, others: readonly LoginCounts[], share = 1): CountedAttempt {
    const pairWaitMs = pair.waitMs(
      others.map((each) => each.pair),
      share,
    );
    const networkWaitMs = address.waitMs(
      others.map((each) => each.network),
      share,
    );
    const refusal = refusalAfter(Math.max(pairWaitMs, networkWaitMs));
    const hasFailed =
      this.#failedPairs.add(keys.pair, this.#now(), 0).count > 0 || others.some((each) => each.hasFailed);
    const giveBack = () => {
      pair.giveBack();
      address.giveBack();
    };
    if (refusal !== undefined && (pairWaitMs > 0 || hasFailed)) {
      giveBack();
      throw refusal;
    }
    if (networkWaitMs > 0) address.giveBack();
    const settle: CountedAttempt['settle'] = (result) => {
      if (result === 'wrong') this.#failedPairs.add(keys.pair, this.#now());
      else giveBack();
      if (result === 'right') this.#known.set(keys.pair, true);
    };
    return { network, isKnown: this.#known.has(keys.pair), refusal, settle };
  }
}

interface Taken {
  readonly keys: LoginKeys;
  readonly network: string;
  readonly pair: Counted;
  readonly address: Counted;
}

/** One attempt in one counter: counted, unless it exceeds the limit. */
class Counted {
  readonly #counter: WindowCounter;
  readonly #key: string;
  readonly #atMs: number;
  readonly #limit: number;
  readonly #window: Window;
  #isCounted: boolean;

  constructor(counter: WindowCounter, key: string, atMs: number, limit: number) {
    this.#counter = counter;
    this.#key = key;
    this.#atMs = atMs;
    this.#limit = limit;
    this.#window = counter.add(key, atMs, 1, limit);
    this.#isCounted = this.#window.count <= limit;
  }

  /** 0: the attempt is within the limit, together with the counts of other nodes. Else the time until the windows end. */
  waitMs(others: readonly Window[], share: number): number {
    const { count, endsInMs } = this.#window;
    const sum = others.reduce((total, other) => total + other.count, count);
    if (sum <= Math.max(1, Math.floor(this.#limit * share))) return 0;
    // A window with this attempt alone ends when it is given back.
    const full = others.filter((other) => other.count > 0).map((other) => other.endsInMs);
    return Math.max(...full, count > 1 || full.length === 0 ? endsInMs : 0);
  }

  /** The windows of all nodes end together: that of the first failure counts. */
  join({ count, endsInMs }: Window, askedAtMs: number): void {
    if (count > 0 && endsInMs >= MIN_JOINED_MS)
      this.#counter.shorten(this.#key, this.#atMs, askedAtMs + endsInMs);
  }

  giveBack(): void {
    if (this.#isCounted) this.#counter.giveBack(this.#key, this.#atMs);
    this.#isCounted = false;
  }
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

function refusalAfter(waitMs: number): GatewayError | undefined {
  return waitMs === 0 ? undefined : tooManyAttempts(Math.max(1, Math.ceil(waitMs / 1000)));
}
