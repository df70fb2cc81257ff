// The calls that one instance carries, by owner: those that it works on, which fill its places, and those that wait for an
// answer of their client, which do not. Which instance a call goes to is decided by the balancer. Source: ADR 41.

import { LIMITS } from '../../domain/limits.ts';
import { isWithinEqualPart, OwnerShares } from './owner-shares.ts';

export class InFlightSlots {
  #carried = 0;
  #resting = 0;
  /** Calls that rested and went on, for which there may have been no place. */
  #returned = 0;
  readonly #restingBy = new OwnerShares(LIMITS.parkedCalls);
  readonly #workingBy = new OwnerShares(LIMITS.inFlightPerInstance);

  /** All calls under way. */
  get carried(): number {
    return this.#carried;
  }
  /** Those that take up a place. */
  get working(): number {
    return this.#carried - this.#resting;
  }

  /**
   * True when a call of this owner may begin: below LIMITS.inFlightPerInstance always. Above it, LIMITS.inFlightReserve
   * places are for owners within an equal part, each of which may hold as many places as the reserve has free: the reserve is
   * halved from owner to owner and is never taken by one of them alone.
   */
  hasPlaceFor(ownerId: string): boolean {
    if (this.working < LIMITS.inFlightPerInstance) return true;
    const reserved = Math.max(0, this.working - this.#returned - LIMITS.inFlightPerInstance);
    return this.#workingBy.held(ownerId) < LIMITS.inFlightReserve - reserved && this.isBelowShare(ownerId);
  }

  /** True when this owner has less than an equal part of the places, and one more would not be above it. */
  isBelowShare(ownerId: string): boolean {
    const held = this.#workingBy.held(ownerId);
    const owners = this.#workingBy.size + (held === 0 ? 1 : 0);
    return isWithinEqualPart(held, owners, LIMITS.inFlightPerInstance);
  }

  /** A call begins. */
  take(ownerId: string): void {
    this.#carried += 1;
    this.#workingBy.take(ownerId);
  }

  /** A call has ended; one that rested has gone on before. `hasReturned`: it has rested. */
  leave(ownerId: string, hasReturned = false): void {
    this.#carried -= 1;
    if (hasReturned) this.#returned -= 1;
    this.#workingBy.giveBack(ownerId);
  }

  /**
   * A call waits for its client. False when LIMITS.parkedCalls do already, or its owner's share of them: it may not.
   * `hasReturned`: it has rested before.
   */
  rest(ownerId: string, hasReturned = false): boolean {
    if (this.#resting >= LIMITS.parkedCalls || this.#restingBy.isFull(ownerId)) return false;
    this.#resting += 1;
    if (hasReturned) this.#returned -= 1;
    this.#restingBy.take(ownerId);
    this.#workingBy.giveBack(ownerId);
    return true;
  }

  /** It goes on, whether there is a place for it or not: its backend works on it already. */
  goOn(ownerId: string): void {
    this.#resting -= 1;
    this.#returned += 1;
    this.#restingBy.giveBack(ownerId);
    this.#workingBy.take(ownerId);
  }
}
