// Hashes and compares passwords with bcrypt, a few at a time, shared fairly between callers. Accounts are in accounts.ts; login.ts limits failed logins.

import { hash as digestOf } from 'node:crypto';
import bcrypt from 'bcrypt';
import { passwordIssue } from '../domain/account.ts';
import { tooManyPasswords } from '../domain/error-catalogue.ts';
import { WindowCounter } from './rate-limiter.ts';

/** 2^12 rounds: about 0.2 s. Source: ADR 16. */
const BCRYPT_COST = 12;

/** Two hashes leave the other threads of the pool to files and DNS; a queue of 20 is two seconds. */
const HASHES_AT_ONCE = 2;
const HASHES_WAITING = 20;
const RETRY_AFTER_SECONDS = 2;

/** The hashes of a user and of an address in this time decide whose turn it is. Source: ADR 92. */
const SHARE_SECONDS = 10;
const COUNTED_SHARES = 1_000;
/** A known caller with fewer hashes in this time, waiting ones included, goes first. */
const FIRST_HASHES = 4;

/** The caller for which a password is hashed. */
export interface HashCaller {
  /** Name or id, of at most 1,024 characters. */
  readonly user: string;
  readonly address: string;
  /** True for a verified caller, a user who logged in from this address before, and an admin on this machine. */
  readonly isKnown: boolean;
}

/** The gateway itself, at its start, and the command line. */
const ITSELF: HashCaller = { user: '', address: '', isKnown: true };

/** One per process, so that its limit applies to all callers. */
export class Passwords {
  readonly #cost: number;
  readonly #dummyHash: string;
  readonly #queue: HashQueue;

  /** `cost` is 4 to 31; each step doubles the time. `now` is monotonic, in ms. */
  constructor(cost: number = BCRYPT_COST, now: () => number = () => performance.now()) {
    this.#cost = cost;
    this.#queue = new HashQueue(now);
    // The hash of no password: a comparison costs the same, and its result is not used.
    this.#dummyHash = `$2b$${String(cost).padStart(2, '0')}$${'C6UzMDM.H6dfI/f/IKcEeO'}${'7ZqpfUaeImyBHWjVhDrbT1lTzc4Hvqa'}`;
  }

  /** TOO_MANY_ATTEMPTS when the queue is full. The password was validated. */
  hash(password: string, caller: HashCaller = ITSELF): Promise<string> {
    return this.#queue.run(caller, () => bcrypt.hash(password, this.#cost));
  }

  /**
   * True when the hash is of this password. Without a hash (no such user) and for an invalid password,
   * resolves with false after the same work. A function is called when it is the caller's turn, so that refused attempts
   * cost no query; its errors pass. TOO_MANY_ATTEMPTS.
   */
  matches(
    password: string,
    stored: string | undefined | (() => Promise<string | undefined>),
    caller: HashCaller = ITSELF,
  ): Promise<boolean> {
    return this.#queue.run(caller, async () => {
      const hash = typeof stored === 'function' ? await stored() : stored;
      const canMatch = hash !== undefined && passwordIssue(password) === undefined;
      // bcrypt compares only the first 72 bytes, hence the condition above.
      const isEqual = await this.compare(password, hash ?? this.#dummyHash);
      return canMatch && isEqual;
    });
  }

  /** One run of bcrypt. Protected, so that a spec can observe it. */
  protected compare(password: string, hash: string): Promise<boolean> {
    return bcrypt.compare(password, hash);
  }
}

interface WaitingHash {
  readonly isKnown: boolean;
  /** Keys of the user and of the address. Known callers have other shares than unknown ones with the same name or address. */
  readonly shares: readonly string[];
  readonly turn: PromiseWithResolvers<void>;
}

/**
 * Runs a few jobs at a time. The next job is that of the user and the address with the fewest hashes lately; in a full queue the job
 * that would be last is refused. Source: ADR 92.
 */
class HashQueue {
  readonly #now: () => number;
  readonly #done: WindowCounter;
  /** In the order of their arrival. */
  #waiting: readonly WaitingHash[] = [];
  #running = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#done = new WindowCounter({ windowSeconds: SHARE_SECONDS, keys: COUNTED_SHARES });
  }

  /** TOO_MANY_ATTEMPTS when the queue is full, or becomes full while the job waits. */
  async run<T>({ user, address, isKnown }: HashCaller, job: () => Promise<T>): Promise<T> {
    // A hash, because the counter keeps the keys.
    const shares = [`user ${user}`, `address ${address}`].map((key) =>
      digestOf('sha256', `${isKnown} ${key}`),
    );
    const waiting: WaitingHash = { isKnown, shares, turn: Promise.withResolvers() };
    this.#waiting = [...this.#waiting, waiting];
    if (this.#running < HASHES_AT_ONCE) this.#startNext();
    else if (this.#waiting.length > HASHES_WAITING) this.#refuseLast();
    await waiting.turn.promise;
    try {
      return await job();
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }

  #startNext(): void {
    const [next] = this.#inOrder(() => 0);
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((one) => one !== next);
    this.#running += 1;
    for (const share of next.shares) this.#done.add(share, this.#now());
    next.turn.resolve();
  }

  /** Waiting jobs count here, so that the largest share of the queue gives way. */
  #refuseLast(): void {
    const waitingOf = new Map<string, number>();
    for (const share of this.#waiting.flatMap(({ shares }) => shares))
      waitingOf.set(share, (waitingOf.get(share) ?? 0) + 1);
    const last = this.#inOrder((share) => waitingOf.get(share) ?? 0).at(-1);
    this.#waiting = this.#waiting.filter((one) => one !== last);
    last?.turn.reject(tooManyPasswords(RETRY_AFTER_SECONDS));
  }

  /** Known callers with few hashes first, then by the larger count of both shares, then by their sum. */
  #inOrder(waitingOf: (share: string) => number): readonly WaitingHash[] {
    const nowMs = this.#now();
    const ranked = this.#waiting.map((one) => {
      const counts = one.shares.map((share) => this.#done.add(share, nowMs, 0).count + waitingOf(share));
      const most = Math.max(...counts);
      const isFirst = one.isKnown && most <= FIRST_HASHES;
      return { one, order: [Number(!isFirst), most, counts.reduce((sum, count) => sum + count, 0)] };
    });
    // Stable: equal jobs stay in the order of their arrival.
    return ranked.sort((a, b) => compareEach(a.order, b.order)).map(({ one }) => one);
  }
}

function compareEach(a: readonly number[], b: readonly number[]): number {
  return a.map((value, index) => value - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
}
