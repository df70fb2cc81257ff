// The latest events of one event stream, for a client that lost its connection. Bounded per stream here, per session and
// endpoint by their budget.
// Source: MCP 2025-11-25 basic/transports#resumability-and-redelivery.
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
export class StreamLog {
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

// The memory budget for clients that may come back: of one session, as a part of that of all sessions. Some of the stored
// events are spare: they go, oldest first, as soon as anything else needs their room.

const MIB = 1024 * 1024;

/** How much there may be. */
interface BudgetBounds {
  /** Of everything. */
  readonly bytes: number;
  /** Of what is spare: bytes, and how many. */
  readonly spareBytes: number;
  readonly spares: number;
}

/** Of all streams of one session. Its spare part has room for any one stream (legacy-event-log.ts). */
const OF_SESSION: BudgetBounds = { bytes: 4 * MIB, spareBytes: MIB, spares: 64 };
/** And of all sessions of one endpoint. A small answer may keep 8 KiB: those that Node cut it from. */
const MOST_OF_ALL = 256 * MIB;
const MOST_SPARES_OF_ALL = 4_096;

/** A counted part that is discarded when its room is needed. */
export interface Spare {
  /** Does not change while it is one. */
  readonly bytes: number;
  /** Gives its room back, and is no spare any more. */
  discard(): void;
}

/** What several streams hold together: those of a session, or of all sessions. */
export class EventBudget {
  readonly #bounds: BudgetBounds;
  readonly #whole: EventBudget | undefined;
  #bytes = 0;
  #spareBytes = 0;
  /** Oldest first. */
  readonly #spares = new Set<Spare>();

  constructor(bounds: BudgetBounds, whole?: EventBudget) {
    this.#bounds = bounds;
    this.#whole = whole;
  }

  /** That of all sessions. `bytes`: what the memory allows, if that is less than the usual bound. */
  static ofAll(bytes: number = MOST_OF_ALL): EventBudget {
    const most = Math.min(bytes, MOST_OF_ALL);
    return new EventBudget({ bytes: most, spareBytes: Math.floor(most / 4), spares: MOST_SPARES_OF_ALL });
  }

  /** That of one session, as a part of another one. */
  static ofSession(whole?: EventBudget): EventBudget {
    return new EventBudget(OF_SESSION, whole);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many spares there are. */
  get spares(): number {
    return this.#spares.size;
  }

  /** True when so many bytes more would have room without anything that is spare. */
  couldHold(bytes: number): boolean {
    const needed = this.#bytes - this.#spareBytes + bytes;
    return needed <= this.#bounds.bytes && (this.#whole?.couldHold(bytes) ?? true);
  }

  /** Makes room for so many bytes more: spares go for it. False when that would not be enough; then they stay. */
  makeRoom(bytes: number): boolean {
    if (!this.couldHold(bytes)) return false;
    this.#dropFor(bytes);
    return this.#whole?.makeRoom(bytes) ?? true;
  }

  /** Takes so many bytes, or gives them back when there are fewer than none. */
  count(bytes: number): void {
    this.#bytes += bytes;
    this.#whole?.count(bytes);
  }

  /** From now on it is kept only while there is room; the oldest ones go for it if there are too many. */
  addSpare(spare: Spare): void {
    this.#spares.add(spare);
    this.#spareBytes += spare.bytes;
    this.#whole?.addSpare(spare);
    this.#dropSurplus();
  }

  /** It is as needed as anything else again, or gone. Ignored for what is no spare. */
  removeSpare(spare: Spare): void {
    if (!this.#spares.delete(spare)) return;
    this.#spareBytes -= spare.bytes;
    this.#whole?.removeSpare(spare);
  }

  #dropFor(bytes: number): void {
    for (const oldest of this.#spares) {
      if (this.#bytes + bytes <= this.#bounds.bytes) break;
      oldest.discard();
    }
  }

  #dropSurplus(): void {
    const { spareBytes, spares } = this.#bounds;
    for (const oldest of this.#spares) {
      if (this.#spareBytes <= spareBytes && this.#spares.size <= spares) break;
      oldest.discard();
    }
  }
}
