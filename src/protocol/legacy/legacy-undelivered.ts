// The messages of a server that wait for its client to open a stream: few, and not large. They count as a part of what
// the session may hold.

import { LIMITS } from '../../domain/limits.ts';
import type { EventBudget } from './legacy-event-budget.ts';

/** Bytes of all messages that wait in one session. */
const MOST_BYTES = 1024 * 1024;

/** A message that found no stream. */
export interface Undelivered {
  readonly message: string;
  /** The id of a request of the server; undefined for a notification, which gives way. */
  readonly question: number | undefined;
}

interface Kept extends Undelivered {
  readonly bytes: number;
}

/** Those of one session, oldest first. */
export class UndeliveredMessages {
  readonly #budget: EventBudget;
  #kept: Kept[] = [];
  #bytes = 0;

  constructor(budget: EventBudget) {
    this.#budget = budget;
  }

  /** True when nothing waits. */
  get isEmpty(): boolean {
    return this.#kept.length === 0;
  }

  /** Keeps a message; the oldest notifications make room for it. False when that is not enough. */
  keep(message: Undelivered): boolean {
    const bytes = Buffer.byteLength(message.message);
    if (bytes > MOST_BYTES) return false;
    while (!this.#findRoom(bytes)) {
      const oldest = this.#kept.findIndex(({ question }) => question === undefined);
      if (oldest === -1) return false;
      for (const dropped of this.#kept.splice(oldest, 1)) this.#count(-dropped.bytes);
    }
    this.#kept.push({ ...message, bytes });
    this.#count(bytes);
    return true;
  }

  /** Hands them out, oldest first; none is left. */
  takeAll(): readonly Undelivered[] {
    const taken = this.#kept;
    this.#kept = [];
    this.#count(-this.#bytes);
    return taken;
  }

  #findRoom(bytes: number): boolean {
    const isBelow = this.#kept.length < LIMITS.undeliveredMessages && this.#bytes + bytes <= MOST_BYTES;
    return isBelow && this.#budget.makeRoom(bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.count(bytes);
  }
}
