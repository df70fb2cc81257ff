// The amounts that each user holds of a resource that all share, in bytes or in number, and the share that one user may have.
// Source: ADR 41, ADR 42.

import { ANONYMOUS, countedIdOf } from '../accounts/principal.ts';
import { LIMITS } from '../limits.ts';

/** The amount that an owner may always hold: the need of one client. */
export const MIN_SHARE = 8;

/** The user of messages that the gateway itself sends. */
export const NO_CALLER = '';

/**
 * Amounts by user, and their sum. A user with nothing is not kept. A single user, which is the usual case,
 * needs no Map: its entry would be added and deleted with each call, and V8 links the old tables of a Map to the
 * new ones (call-map.ts).
 */
export class UserAmounts {
  #first = NO_CALLER;
  #firstHeld = 0;
  /** The amounts of all other users. */
  #others: Map<string, number> | undefined;
  /** The last principal that is not counted by its own id: most calls follow one of the same. */
  #lastId = NO_CALLER;
  #lastUser = NO_CALLER;
  total = 0;

  get size(): number {
    return (this.#firstHeld > 0 ? 1 : 0) + (this.#others?.size ?? 0);
  }

  get users(): Iterable<string> {
    return [...(this.#firstHeld > 0 ? [this.#first] : []), ...(this.#others?.keys() ?? [])];
  }

  /** The principals of one user are counted together. */
  held(principalId: string): number {
    return this.#held(this.#countedIdOf(principalId));
  }

  #countedIdOf(id: string): string {
    if (id === this.#lastId) return this.#lastUser;
    const countedId = countedIdOf(id);
    if (countedId === id) return id;
    this.#lastId = id;
    this.#lastUser = countedId;
    return countedId;
  }

  #held(countedId: string): number {
    if (countedId === this.#first && this.#firstHeld > 0) return this.#firstHeld;
    return this.#others?.get(countedId) ?? 0;
  }

  /** Counts this amount more, without a check. */
  add(principalId: string, amount = 1): void {
    const countedId = this.#countedIdOf(principalId);
    const held = this.#held(countedId) + amount;
    if (this.#firstHeld === 0 && this.#others?.has(countedId) !== true) this.#first = countedId;
    if (countedId === this.#first) this.#firstHeld = Math.max(0, held);
    else if (held > 0) {
      this.#others ??= new Map();
      this.#others.set(countedId, held);
    } else this.#others?.delete(countedId);
    this.total += amount;
  }

  release(principalId: string, amount = 1): void {
    this.add(principalId, -amount);
  }
}

/** A bound that is reached: the share of one user, or that of all users together. */
export interface Exceeded {
  readonly most: number;
  readonly isShare: boolean;
}

/**
 * The amounts of a bounded resource that users hold, in number or in bytes: no user may hold all of it, so that the
 * others are served. While authentication is off, all callers are one user, which may. Source: ADR 42.
 */
export class UserShares extends UserAmounts {
  readonly most: number;
  /** The most that one user may hold. */
  readonly share: number;

  constructor(most: number, share: number = shareOf(most)) {
    super();
    this.most = most;
    this.share = share;
  }

  get isFull(): boolean {
    return this.total >= this.most;
  }

  /** True when this user holds at least this part of its share. */
  isShareFull(principalId: string, part = 1): boolean {
    return principalId !== ANONYMOUS.id && this.held(principalId) >= this.share * part;
  }

  /** The bound that this amount more of the user would exceed; undefined when there is room. */
  exceededBy(principalId: string, amount = 1): Exceeded | undefined {
    if (this.#isOverShare(principalId, amount)) return { most: this.share, isShare: true };
    return this.total + amount > this.most ? { most: this.most, isShare: false } : undefined;
  }

  /** True when this amount more is within both bounds. `add` may exceed them. */
  fits(principalId: string, amount = 1): boolean {
    return this.total + amount <= this.most && !this.#isOverShare(principalId, amount);
  }

  /** Counts this amount more and returns true, if it is within both bounds. `release` gives it back. */
  take(principalId: string, amount = 1): boolean {
    if (!this.fits(principalId, amount)) return false;
    this.add(principalId, amount);
    return true;
  }

  #isOverShare(principalId: string, amount: number): boolean {
    return principalId !== ANONYMOUS.id && this.held(principalId) + amount > this.share;
  }
}

/** The share of one user in a number: the part `part` of `most`, above 0 and up to 1, but at least `least`. */
export function shareOf(most: number, part: number = LIMITS.ownerShare, least: number = MIN_SHARE): number {
  const share = Math.floor(Math.round(most * part * 1e6) / 1e6); // 100 * 0.29 is 28.999…
  return Math.min(most, Math.max(least, share));
}

/**
 * True when a user that holds `held` may have one more within an equal part of `most`. `users`: how many users share it,
 * this one included. When it may and nothing is free, another user holds more than an equal part.
 */
export function isWithinEqualPart(held: number, users: number, most: number): boolean {
  return (held + 1) * users <= most;
}
