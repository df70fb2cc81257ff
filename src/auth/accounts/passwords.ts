// Hashes and compares passwords with bcrypt, a few at a time, shared fairly between callers. Accounts are in
// accounts.ts; logins.ts limits failed logins.

import bcrypt from 'bcrypt';
import { passwordIssue } from '../../domain/accounts/account.ts';
import { tooManyPasswords } from '../../domain/errors/account-errors.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { FairQueue, type Shares } from '../limits/fair-queue.ts';

/** 2^12 rounds: about 0.2 s. */
const BCRYPT_COST = 12;

/** Two hashes leave the other threads of the pool to files and DNS; a queue of 20 is two seconds. */
const MAX_HASHES = 2;
const MAX_WAITING = 20;
const RETRY_AFTER_SECONDS = 2;

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

/** Hashes and checks passwords, until its process ends. There is one per process, so that its limit applies to all callers. */
export class Passwords {
  readonly #cost: number;
  readonly #dummyHash: string;
  readonly #queue: FairQueue;

  /** `cost` is 4 to 31; each step doubles the time. */
  constructor({ now }: Clock, cost: number = BCRYPT_COST) {
    this.#cost = cost;
    this.#queue = new FairQueue({
      atOnce: MAX_HASHES,
      waiting: MAX_WAITING,
      now,
      refusal: () => tooManyPasswords(RETRY_AFTER_SECONDS),
    });
    // The hash of no password: a comparison costs the same, and its result is not used.
    this.#dummyHash = `$2b$${String(cost).padStart(2, '0')}$${'C6UzMDM.H6dfI/f/IKcEeO'}${'7ZqpfUaeImyBHWjVhDrbT1lTzc4Hvqa'}`;
  }

  /** Throws TOO_MANY_ATTEMPTS when the queue is full. The password was validated. */
  hash(password: string, caller: HashCaller = ITSELF): Promise<string> {
    return this.#queue.run(sharesOf(caller), () => bcrypt.hash(password, this.#cost));
  }

  /**
   * True when the hash is of this password. Without a hash (no such user) and for an invalid password,
   * resolves with false after the same work. A function is called when it is the caller's turn, so that refused attempts
   * cost no query; its errors pass. Throws TOO_MANY_ATTEMPTS.
   */
  matches(
    password: string,
    stored: string | undefined | (() => Promise<string | undefined>),
    caller: HashCaller = ITSELF,
  ): Promise<boolean> {
    return this.#queue.run(sharesOf(caller), async () => {
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

function sharesOf({ user, address, isKnown }: HashCaller): Shares {
  return { shares: [`user ${user}`, `address ${address}`], isKnown };
}
