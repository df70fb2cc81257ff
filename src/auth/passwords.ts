// Hashes and compares passwords with bcrypt, a few at a time. Accounts are in accounts.ts; login.ts limits failed logins.

import bcrypt from 'bcrypt';
import { passwordIssue } from '../domain/account.ts';
import { tooManyPasswords } from '../domain/error-catalogue.ts';

/** 2^12 rounds: about 0.2 s. Source: ADR 16. */
const BCRYPT_COST = 12;

/** Two hashes leave the other threads of the pool to files and DNS; a queue of 20 is two seconds. */
const HASHES_AT_ONCE = 2;
const HASHES_WAITING = 20;
const RETRY_AFTER_SECONDS = 2;

/** One per process, so that its limit applies to all callers. */
export class Passwords {
  readonly #cost: number;
  readonly #dummyHash: string;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** `cost` is 4 to 31; each step doubles the time. */
  constructor(cost: number = BCRYPT_COST) {
    this.#cost = cost;
    // The hash of no password: a comparison costs the same, and its result is not used.
    this.#dummyHash = `$2b$${String(cost).padStart(2, '0')}$${'C6UzMDM.H6dfI/f/IKcEeO'}${'7ZqpfUaeImyBHWjVhDrbT1lTzc4Hvqa'}`;
  }

  /** TOO_MANY_ATTEMPTS when the queue is full. The password was validated. */
  hash(password: string): Promise<string> {
    return this.#run(() => bcrypt.hash(password, this.#cost));
  }

  /**
   * True when the hash is of this password. Without a hash (no such user) and for an invalid password,
   * resolves with false after the same work. TOO_MANY_ATTEMPTS.
   */
  async matches(password: string, hash: string | undefined): Promise<boolean> {
    const canMatch = hash !== undefined && passwordIssue(password) === undefined;
    // bcrypt compares only the first 72 bytes, hence the condition above.
    const isEqual = await this.#run(() => this.compare(password, hash ?? this.#dummyHash));
    return canMatch && isEqual;
  }

  /** One run of bcrypt. Protected, so that a spec can observe it. */
  protected compare(password: string, hash: string): Promise<boolean> {
    return bcrypt.compare(password, hash);
  }

  /** Runs the job after earlier ones. TOO_MANY_ATTEMPTS when the queue is full. */
  async #run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#running < HASHES_AT_ONCE) this.#running += 1;
    else if (this.#waiting.length < HASHES_WAITING)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else throw tooManyPasswords(RETRY_AFTER_SECONDS);
    try {
      return await job();
    } finally {
      // The slot passes to the next job directly, so that no new job takes it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
