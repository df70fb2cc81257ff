// The memory of lists of servers while they are read and answered: the bytes of pages that wait to be parsed count
// for their instance, the values of parsed ones for the caller. Source: ADR 322.

import { ANONYMOUS } from '../accounts/account.ts';
import type { FinalAnswer } from '../calls/exchange.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable } from '../errors/error-catalogue.ts';
import { GatewayError, retryAfter } from '../errors/errors.ts';
import type { TaskScheduler } from '../tasks/task-scheduler.ts';
import { type ByteBounds, ByteBudget, HeldBytes, memoryOf } from './held-bytes.ts';
import { NO_CALLER } from './user-shares.ts';

export interface ListMemoryOptions {
  /** The bounds of values that are kept. Default: unbounded. */
  readonly bounds?: ByteBounds;
  /** Counts the bytes of pages. Default: unbounded. */
  readonly answers?: HeldBytes;
}

const UNBOUNDED = { totalBytes: Number.POSITIVE_INFINITY, ownerBytes: Number.POSITIVE_INFINITY };

/** The memory that lists of items take while they are read and kept. */
export class ListMemory {
  readonly #values: ByteBudget;
  readonly #answers: HeldBytes;

  constructor({ bounds = UNBOUNDED, answers = new HeldBytes(UNBOUNDED) }: ListMemoryOptions = {}) {
    this.#values = new ByteBudget(bounds);
    this.#answers = answers;
  }

  /** Waits for a turn, in which a page is read. BACKEND_UNAVAILABLE when its bytes are needed for others. */
  async turn(answer: FinalAnswer, scheduler: Pick<TaskScheduler, 'turn'>): Promise<void> {
    const turn = scheduler.turn();
    return turn && this.during(answer, turn);
  }

  /**
   * Counts the bytes of a page until `work` is done, which does not use them. BACKEND_UNAVAILABLE when they are
   * needed for others.
   */
  async during<T>({ event, serverId }: FinalAnswer, work: Promise<T>): Promise<T> {
    if (event.kind !== 'result') return work;
    const { promise: cut, reject } = Promise.withResolvers<never>();
    const refuse = () => reject(backendUnavailable(ANSWERS_HOLD_TOO_MUCH, { delivered: 'yes' }));
    const holding = this.#answers.hold(serverId, refuse);
    try {
      holding.set(event.result.bytes.length);
      return await Promise.race([work, cut]);
    } finally {
      holding.release();
    }
  }

  /** For the list of one request, which has no values yet. */
  open(ownerId: string): ListValues {
    return new ListValues(this.#values, ownerId);
  }
}

/** Owners that are many callers. */
const WITHOUT_SHARE: readonly string[] = [ANONYMOUS.id, NO_CALLER];

/** Counts the values of one list, until `release`. */
export class ListValues {
  readonly #budget: ByteBudget;
  readonly #ownerId: string;
  #bytes = 0;

  constructor(budget: ByteBudget, ownerId: string) {
    this.#budget = budget;
    this.#ownerId = ownerId;
  }

  /**
   * Counts a page before it is parsed. QUEUE_FULL when there is no room: an owner may have one list of any size,
   * or several within its share.
   */
  add(values: number, characters: number): void {
    const bytes = memoryOf(values, characters);
    const { total, bounds } = this.#budget;
    const held = this.#budget.held(this.#ownerId);
    const isOnly = held === this.#bytes || WITHOUT_SHARE.includes(this.#ownerId);
    const isWithin = total + bytes <= bounds.totalBytes && (isOnly || held + bytes <= bounds.ownerBytes);
    if (!isWithin) throw tooManyLists();
    this.#budget.add(this.#ownerId, bytes);
    this.#bytes += bytes;
  }

  release(): void {
    this.#budget.add(this.#ownerId, -this.#bytes);
    this.#bytes = 0;
  }
}

/** Large lists of one caller, or of all callers, that are read and answered, use all the memory that they may. */
function tooManyLists(): GatewayError {
  const message = 'Too many large lists are being read and answered; try again when some are answered.';
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}
