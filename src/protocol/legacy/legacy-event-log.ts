// What was said on one event stream, kept for a client that lost its connection. Bounded per stream here,
// per session and endpoint by their budget.
// Source: MCP 2025-11-25 basic/transports#resumability-and-redelivery.

import type { EventBudget } from './legacy-event-budget.ts';

/** Events, and bytes of them, of one stream. */
const MOST_EVENTS = 256;
const MOST_BYTES = 1024 * 1024;

/** One event, by its number in the stream. */
export interface StoredEvent {
  readonly number: number;
  readonly data: Uint8Array | string;
  readonly bytes: number;
}

/** The latest events of one stream. The oldest make room for new ones. */
export class EventLog {
  readonly #budget: EventBudget;
  #events: StoredEvent[] = [];
  #bytes = 0;

  constructor(budget: EventBudget) {
    this.#budget = budget;
  }

  /** Bytes it holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps an event. False when there is no room for it, even without those before it. */
  append(number: number, data: Uint8Array | string): boolean {
    const bytes = typeof data === 'string' ? Buffer.byteLength(data) : data.length;
    if (bytes > MOST_BYTES || !this.#budget.couldHold(bytes - this.#bytes)) return false;
    while (!this.#findRoom(bytes)) this.#dropOldest();
    this.#events.push({ number, data, bytes });
    this.#count(bytes);
    return true;
  }

  /** Those that came after that number, oldest first. */
  after(number: number): readonly StoredEvent[] {
    return this.#events.filter((event) => event.number > number);
  }

  /** Forgets them all. */
  clear(): void {
    this.#count(-this.#bytes);
    this.#events = [];
  }

  #findRoom(bytes: number): boolean {
    const isBelow = this.#events.length < MOST_EVENTS && this.#bytes + bytes <= MOST_BYTES;
    return isBelow && this.#budget.makeRoom(bytes);
  }

  #dropOldest(): void {
    const oldest = this.#events.shift();
    if (oldest !== undefined) this.#count(-oldest.bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.count(bytes);
  }
}
