// The dedicated conversations with one HTTP backend: how many are being opened at a time, and how
// many sessions are being deleted. The transport opens one conversation, and its caller bounds their number.

import { openingCancelled, openingRefused } from '../../../domain/errors/backend-errors.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import { FairSlots } from '../../../domain/time/fair-slots.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { Closed, Conversation } from '../../transport.ts';
import { MAX_OPENINGS_PER_INSTANCE } from '../http-endpoint.ts';
import type { HttpSession } from './http-session.ts';

/** Conversations of one owner that may be opened with one instance at the same time; others wait. */
export const OPENINGS_PER_OWNER = MAX_OPENINGS_PER_INSTANCE * LIMITS.ownerShare;

const DELETES_AT_ONCE = 64;

/** Resolves when the session was deleted, or had to wait longer than LIMITS.backgroundMs; never rejects. */
export function sessionDeletes(
  scheduler: TaskScheduler,
  clock: Clock,
): (session: Pick<HttpSession, 'end'>) => Promise<void> {
  let queue: FairSlots | undefined; // thousands of instances never delete a session
  const open = (): FairSlots =>
    new FairSlots({
      atOnce: DELETES_AT_ONCE,
      atOncePerShare: DELETES_AT_ONCE,
      maxWaitMs: LIMITS.backgroundMs,
      scheduler,
      clock,
    });
  return (session) => {
    queue ??= open();
    return queue.take({ start: () => session.end() }).catch(() => undefined); // it waited too long
  };
}

/** A conversation that ends alone, or with its transport. */
interface EndableConversation extends Pick<Conversation, 'closed$' | 'close'> {
  end(closed: Closed): Promise<void> | void;
}

/** The open conversations of one transport, and the openings that wait; `end` ends both. */
export class HttpOpenings<U extends EndableConversation> {
  readonly #scheduler: TaskScheduler;
  readonly #queue: FairSlots;
  readonly #open = new Set<U>();
  readonly #over = new AbortController();

  constructor(maxWaitMs: number, scheduler: TaskScheduler, clock: Clock) {
    this.#scheduler = scheduler;
    this.#queue = new FairSlots({
      atOnce: MAX_OPENINGS_PER_INSTANCE,
      atOncePerShare: OPENINGS_PER_OWNER,
      maxWaitMs,
      refusal: openingRefused,
      scheduler,
      clock,
    });
  }

  /**
   * Runs `start`, which rejects when its signal aborts, and resolves with its conversation, if any. Throws
   * `openingRefused`, too.
   */
  async open(
    ownerId: string | undefined,
    signal: AbortSignal,
    start: (signal: AbortSignal) => Promise<U | undefined>,
  ): Promise<U | undefined> {
    const anySignal = AbortSignal.any([signal, this.#over.signal]);
    const opened = await this.#queue.take({
      shareId: ownerId,
      signal: anySignal,
      start: () => start(anySignal),
    });
    if (opened === undefined) return undefined;
    if (anySignal.aborted) {
      void opened.close(); // it was opened too late to be closed by an abort
      throw openingCancelled();
    }
    this.#open.add(opened);
    opened.closed$.subscribe(() => this.#open.delete(opened));
    return opened;
  }

  /** Ends all, aborts the openings, and prevents others. */
  end(closed: Closed): Promise<void> {
    this.#over.abort();
    return this.#scheduler.each([...this.#open], (conversation) => conversation.end(closed));
  }
}
