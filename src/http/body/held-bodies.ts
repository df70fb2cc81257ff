// The memory of request bodies: how many bytes are held for each caller and in all, from the first byte that is read until
// nothing needs them any more, and how many large bodies of one caller are read at the same time. Source: ADR 42.

import { ANONYMOUS, type Principal } from '../../domain/account.ts';
import { type ByteBounds, ByteBudget } from '../../domain/byte-budget.ts';
import { tooManyBodies } from '../../domain/request-errors.ts';
import { HTTP_LIMITS } from '../limits.ts';

/** What is held of one body. */
export class HeldBody {
  readonly #budget: ByteBudget;
  readonly #owner: string;
  #bytes = 0;
  #uses = 1;

  constructor(budget: ByteBudget, owner: string) {
    this.#budget = budget;
    this.#owner = owner;
  }

  /** Counts bytes before they are kept. Throws QUEUE_FULL when the caller, or all callers, hold too many. */
  add(bytes: number): void {
    if (!this.#budget.take(this.#owner, bytes)) throw tooManyBodies();
    this.#bytes += bytes;
  }

  /**
   * Keeps it counted until the returned function is called, also when the response is over by then. After its last use it
   * counts no more.
   */
  keep(): () => void {
    this.#uses += 1;
    let isKept = true;
    return () => {
      if (isKept) this.release();
      isKept = false;
    };
  }

  /** One use of it is over; after the last one its bytes count no more. */
  release(): void {
    this.#uses -= 1;
    if (this.#uses > 0) return;
    this.#budget.giveBack(this.#owner, this.#bytes);
    this.#bytes = 0;
  }
}

/** The bodies of all callers. */
export class HeldBodies {
  readonly #budget: ByteBudget;
  readonly #uploads = new Map<string, number>();
  #opened = 0;

  constructor(bounds: ByteBounds) {
    this.#budget = new ByteBudget(bounds);
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.#budget.heldBytes;
  }

  /** Begins with nothing. While authentication is off all callers are one, who has no share: each body has an owner of its own. */
  open({ id }: Principal): HeldBody {
    this.#opened += 1;
    return new HeldBody(this.#budget, id === ANONYMOUS.id ? `${id} ${this.#opened}` : id);
  }

  /** Counts a large body that is being read; call what is returned when it has been. Throws QUEUE_FULL. */
  upload({ id }: Principal): () => void {
    const uploads = this.#uploads.get(id) ?? 0;
    if (uploads >= HTTP_LIMITS.uploadsPerCaller && id !== ANONYMOUS.id) throw tooManyBodies();
    this.#uploads.set(id, uploads + 1);
    return () => {
      const left = (this.#uploads.get(id) ?? 0) - 1;
      if (left > 0) this.#uploads.set(id, left);
      else this.#uploads.delete(id);
    };
  }
}
