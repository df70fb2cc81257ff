// What was said on one event stream, kept for a client that lost its connection. Bounded per stream, session and endpoint.
// Source: MCP 2025-11-25 basic/transports#resumability-and-redelivery.

/** Events, and bytes of them, of one stream. */
const MOST_EVENTS = 256;
const MOST_BYTES = 1024 * 1024;
/** Bytes of all streams of one session. */
const MOST_SESSION_BYTES = 4 * 1024 * 1024;
/** And of all sessions of one endpoint. */
const MOST_ENDPOINT_BYTES = 256 * 1024 * 1024;

/** One event, by its number in the stream. */
export interface StoredEvent {
  readonly number: number;
  readonly data: Uint8Array | string;
  readonly bytes: number;
}

/** What several streams hold together: those of a session, or of all sessions. */
export class EventBudget {
  readonly #mostBytes: number;
  readonly #whole: EventBudget | undefined;
  #bytes = 0;

  constructor(mostBytes: number, whole?: EventBudget) {
    this.#mostBytes = mostBytes;
    this.#whole = whole;
  }

  /** That of all sessions. */
  static ofAll(): EventBudget {
    return new EventBudget(MOST_ENDPOINT_BYTES);
  }

  /** That of one session, as a part of another one. */
  static ofSession(whole?: EventBudget): EventBudget {
    return new EventBudget(MOST_SESSION_BYTES, whole);
  }

  get bytes(): number {
    return this.#bytes;
  }

  hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.#mostBytes && (this.#whole?.hasRoom(bytes) ?? true);
  }

  /** Takes so many bytes, or gives them back when there are fewer than none. */
  count(bytes: number): void {
    this.#bytes += bytes;
    this.#whole?.count(bytes);
  }
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
    if (bytes > MOST_BYTES || !this.#budget.hasRoom(bytes - this.#bytes)) return false;
    while (!this.#hasRoom(bytes)) this.#dropOldest();
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

  #hasRoom(bytes: number): boolean {
    const isBelow = this.#events.length < MOST_EVENTS && this.#bytes + bytes <= MOST_BYTES;
    return isBelow && this.#budget.hasRoom(bytes);
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
