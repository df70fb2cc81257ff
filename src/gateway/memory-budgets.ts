// The memory that the parts of a gateway hold for callers and instances, each kind within its bound. Source: ADR 42, 45, 89.

import { ListReader } from '../domain/lists/list-reader.ts';
import { type ByteBounds, byteShares, HeldBytes, type MemoryBounds } from '../domain/memory/held-bytes.ts';
import type { UserShares } from '../domain/memory/user-shares.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';

/** The budgets of one gateway; MemoryBounds says what each bounds, and who the owner is. */
export interface MemoryBudgets {
  /** Requests of callers, and other messages that wait for backends. */
  readonly requestBytes: UserShares;
  /** Incomplete answers of backends. */
  readonly heldAnswers: HeldBytes;
  /** Reads lists of servers, and counts them meanwhile. */
  readonly listReader: ListReader;
  /** Declarations of clients that are kept. */
  readonly declarations: UserShares;
  /** Lists of the tools of servers that are kept, by server id. */
  readonly toolLists: UserShares;
  /** Results of handshakes with servers that are kept, by server id. */
  readonly handshakes: UserShares;
  /** Questions to clients of the modern era, and results for them. */
  readonly heldQuestions: HeldBytes;
  /** The most bytes that are buffered for clients that may reconnect. */
  readonly bufferedBytes: number;
}

/** New budgets with these bounds. `requests`: goes before the bound of requests. */
export function memoryBudgets(
  bounds: MemoryBounds,
  { clock, scheduler }: Timing,
  requests: ByteBounds = bounds.requests,
): MemoryBudgets {
  const heldAnswers = new HeldBytes(bounds.backendAnswers, clock.now);
  return {
    requestBytes: byteShares(requests),
    heldAnswers,
    listReader: new ListReader({ bounds: bounds.lists, answers: heldAnswers, scheduler }),
    declarations: byteShares(bounds.declarations),
    toolLists: byteShares(bounds.declarations),
    handshakes: byteShares(bounds.declarations),
    heldQuestions: new HeldBytes(bounds.questions, clock.now),
    // Buffered events mostly share their bytes with unread answers, and so get half of that bound.
    bufferedBytes: bounds.unreadAnswers.totalBytes / 2,
  };
}
