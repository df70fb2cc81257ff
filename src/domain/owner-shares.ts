// How much of a bounded resource each owner holds: no owner may hold all of it, so that the others are served. The caller
// decides what is counted, and what a refusal says.

import { ANONYMOUS } from './account.ts';
import { LIMITS } from './limits.ts';

export class OwnerShares {
  readonly share: number;
  /** True when one owner may hold everything: then only the total is bounded. */
  readonly coversAll: boolean;
  readonly #most: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** Of `most` in all, each owner may hold `part`, above 0 and up to 1; LIMITS.ownerShareLeast if that is more. */
  constructor(most: number, part: number = LIMITS.ownerShare) {
    const share = Math.floor(Math.round(most * part * 1e6) / 1e6); // 100 * 0.29 is 28.999…
    this.share = Math.min(most, Math.max(LIMITS.ownerShareLeast, share));
    this.coversAll = this.share === most;
    this.#most = most;
  }

  get total(): number {
    return this.#total;
  }

  get isFull(): boolean {
    return this.#total >= this.#most;
  }

  get size(): number {
    return this.#held.size;
  }

  get owners(): Iterable<string> {
    return this.#held.keys();
  }

  held(ownerId: string): number {
    return this.#held.get(ownerId) ?? 0;
  }

  /** True when this owner may hold no more. While authentication is off all callers are one owner, which has no share. */
  isShareFull(ownerId: string): boolean {
    return ownerId !== ANONYMOUS.id && this.held(ownerId) >= this.share;
  }

  take(ownerId: string): void {
    this.#total += 1;
    this.#held.set(ownerId, this.held(ownerId) + 1);
  }

  release(ownerId: string): void {
    this.#total -= 1;
    const held = this.held(ownerId) - 1;
    if (held > 0) this.#held.set(ownerId, held);
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
