// What each owner holds of something that all share, in bytes or in number, and the part of it that one may have.
// Source: ADR 41, ADR 42.

import { ANONYMOUS, countedIdOf } from '../accounts/account.ts';
import { LIMITS } from '../limits.ts';

/** Owner of messages that the gateway itself sends. */
export const NO_CALLER = '';

/**
 * Amounts by owner, and their sum. An owner with nothing is not kept. A single owner, which is the usual case,
 * needs no Map: its entry would be added and deleted with each call, and V8 links the old tables of a Map to the
 * new ones (call-map.ts).
 */
export class OwnerAmounts {
  #first = NO_CALLER;
  #firstHeld = 0;
  /** The amounts of all other owners. */
  #others: Map<string, number> | undefined;
  /** The last principal that is not counted by its own id: most calls follow one of the same. */
  #lastId = NO_CALLER;
  #lastOwner = NO_CALLER;
  total = 0;

  get size(): number {
    return (this.#firstHeld > 0 ? 1 : 0) + (this.#others?.size ?? 0);
  }

  get owners(): Iterable<string> {
    return [...(this.#firstHeld > 0 ? [this.#first] : []), ...(this.#others?.keys() ?? [])];
  }

  /** The principals of one user are one owner. */
  held(principalId: string): number {
    return this.#held(this.#ownerOf(principalId));
  }

  #ownerOf(id: string): string {
    if (id === this.#lastId) return this.#lastOwner;
    const ownerId = countedIdOf(id);
    if (ownerId === id) return id;
    this.#lastId = id;
    this.#lastOwner = ownerId;
    return ownerId;
  }

  #held(ownerId: string): number {
    if (ownerId === this.#first && this.#firstHeld > 0) return this.#firstHeld;
    return this.#others?.get(ownerId) ?? 0;
  }

  /** A negative `amount` is subtracted. */
  add(principalId: string, amount: number): void {
    const ownerId = this.#ownerOf(principalId);
    const held = this.#held(ownerId) + amount;
    if (this.#firstHeld === 0 && this.#others?.has(ownerId) !== true) this.#first = ownerId;
    if (ownerId === this.#first) this.#firstHeld = Math.max(0, held);
    else if (held > 0) {
      this.#others ??= new Map();
      this.#others.set(ownerId, held);
    } else this.#others?.delete(ownerId);
    this.total += amount;
  }
}

/**
 * How much of a bounded resource each owner holds: no owner may hold all of it, so that the others are
 * served. The caller decides which amounts count, and how a refusal is reported.
 */
export class OwnerShares extends OwnerAmounts {
  readonly share: number;
  readonly #most: number;

  /** Each owner may hold the part `part` of `most`, above 0 and up to 1, but at least `least`. */
  constructor(most: number, part: number = LIMITS.ownerShare, least: number = LIMITS.ownerShareLeast) {
    super();
    const share = Math.floor(Math.round(most * part * 1e6) / 1e6); // 100 * 0.29 is 28.999…
    this.share = Math.min(most, Math.max(least, share));
    this.#most = most;
  }

  get isFull(): boolean {
    return this.total >= this.#most;
  }

  /** True when this owner may hold no more. While authentication is off all callers are one owner, which has no share. */
  isShareFull(ownerId: string): boolean {
    return ownerId !== ANONYMOUS.id && this.held(ownerId) >= this.share;
  }

  take(ownerId: string): void {
    this.add(ownerId, 1);
  }

  release(ownerId: string): void {
    this.add(ownerId, -1);
  }
}

/**
 * True when an owner that holds `held` may have one more within an equal part of `most`. `owners`: how many owners share it,
 * this one included. When it may and nothing is free, another owner holds more than an equal part.
 */
export function isWithinEqualPart(held: number, owners: number, most: number): boolean {
  return (held + 1) * owners <= most;
}
