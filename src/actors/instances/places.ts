// The calls that one instance carries: those that it works on, which fill its places, and those that wait for an answer of
// their client, which do not. Who may take a place is decided by whoever reads the numbers.

import { LIMITS } from '../../domain/limits.ts';
import { OwnerShares } from './owner-shares.ts';

export class Places {
  #carried = 0;
  #resting = 0;
  readonly #shares = new OwnerShares(LIMITS.parkedCalls);

  /** All calls under way. */
  get carried(): number {
    return this.#carried;
  }
  /** Those that take up a place. */
  get working(): number {
    return this.#carried - this.#resting;
  }

  /** A call begins. */
  take(): void {
    this.#carried += 1;
  }

  /** A call has ended; one that rested has gone on before. */
  leave(): void {
    this.#carried -= 1;
  }

  /** A call waits for its client. False when LIMITS.parkedCalls do already, or its owner's share of them: it may not. */
  rest(ownerId: string): boolean {
    if (this.#resting >= LIMITS.parkedCalls || this.#shares.isFull(ownerId)) return false;
    this.#resting += 1;
    this.#shares.take(ownerId);
    return true;
  }

  /** It goes on, whether there is a place for it or not: its backend works on it already. */
  goOn(ownerId: string): void {
    this.#resting -= 1;
    this.#shares.giveBack(ownerId);
  }
}
