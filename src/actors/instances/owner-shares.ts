// How much of something bounded each owner holds: no one of them may hold all of it, so that the others are served.
// What is counted, and what a refusal says, is the caller's business.

import { ANONYMOUS } from '../../domain/account.ts';
import { LIMITS } from '../../domain/limits.ts';

export class OwnerShares {
  /** What one owner may hold. */
  readonly share: number;
  /** True when that is all there is: then no share bounds an owner, and a greater one would not help. */
  readonly isAll: boolean;
  readonly #held = new Map<string, number>();

  /** Of `most` in all, each owner may hold `part`, above 0 and up to 1; LIMITS.ownerShareLeast if that is more. */
  constructor(most: number, part: number = LIMITS.ownerShare) {
    const share = Math.floor(Math.round(most * part * 1e6) / 1e6); // 100 * 0.29 is 28.999…
    this.share = Math.min(most, Math.max(LIMITS.ownerShareLeast, share));
    this.isAll = this.share === most;
  }

  /** Number of owners that hold something. */
  get size(): number {
    return this.#held.size;
  }

  /** Ids of those owners. */
  get owners(): Iterable<string> {
    return this.#held.keys();
  }

  /** What this owner holds. */
  held(ownerId: string): number {
    return this.#held.get(ownerId) ?? 0;
  }

  /** True when this owner may hold no more. While authentication is off all callers are one owner, which has no share. */
  isFull(ownerId: string): boolean {
    return ownerId !== ANONYMOUS.id && this.held(ownerId) >= this.share;
  }

  take(ownerId: string): void {
    this.#held.set(ownerId, this.held(ownerId) + 1);
  }

  giveBack(ownerId: string): void {
    const left = this.held(ownerId) - 1;
    if (left > 0) this.#held.set(ownerId, left);
    else this.#held.delete(ownerId);
  }
}

/**
 * True when an owner that holds `held` stays within an equal part of `most` with one more. `owners`: how many owners share it,
 * this one included. If it does and everything is taken, another owner holds more than an equal part.
 */
export function isWithinEqualPart(held: number, owners: number, most: number): boolean {
  return (held + 1) * owners <= most;
}
