// Counts the memory of request bodies, per caller and in total, from the first byte until the last use, and the
// large bodies of one caller that are read at the same time. Source: ADR 42.

import type { Principal } from '../../domain/accounts/principal.ts';
import { tooManyBodies } from '../../domain/errors/request-errors.ts';
import { UserShares } from '../../domain/memory/user-shares.ts';
import { HTTP_LIMITS } from '../http-limits.ts';

/** The counted memory of one body, which its last use gives back. */
export class HeldBody {
  readonly #budget: UserShares;
  readonly #owner: string;
  #bytes = 0;
  #uses = 1;

  constructor(budget: UserShares, owner: string) {
    this.#budget = budget;
    this.#owner = owner;
  }

  /** Counts bytes before they are kept. Throws QUEUE_FULL when the caller, or all callers together, hold too many. */
  add(bytes: number): void {
    if (!this.#budget.take(this.#owner, bytes)) throw tooManyBodies();
    this.#bytes += bytes;
  }

  /** Adds a use: the memory stays counted until the returned function is called, also after the response. */
  keep(): () => void {
    this.#uses += 1;
    let isCounted = true;
    return () => {
      if (isCounted) this.release();
      isCounted = false;
    };
  }

  /** Ends one use; the last one releases the memory. */
  release(): void {
    this.#uses -= 1;
    if (this.#uses > 0) return;
    this.#budget.release(this.#owner, this.#bytes);
    this.#bytes = 0;
  }
}

/** The counted memory of all bodies. */
export class HeldBodies {
  readonly #budget: UserShares;
  readonly #uploads = new UserShares(Number.POSITIVE_INFINITY, HTTP_LIMITS.uploadsPerCaller);

  /** `budget`: also counts the bodies that wait for backends after their response. */
  constructor(budget: UserShares) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#budget.total;
  }

  /** A body of no bytes yet. */
  open({ id }: Principal): HeldBody {
    return new HeldBody(this.#budget, id);
  }

  /** Counts a large body while it is read, until the returned function is called. Throws QUEUE_FULL. */
  upload({ id }: Principal): () => void {
    if (!this.#uploads.take(id)) throw tooManyBodies();
    return () => this.#uploads.release(id);
  }
}
