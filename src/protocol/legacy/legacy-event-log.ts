// Stored events of streams, for clients that lost their connection or have not opened a stream yet: a log per stream, and the memory
// budgets per session and endpoint that bound the logs. Source: MCP 2025-11-25 basic/transports#resumability-and-redelivery.

const MIB = 1024 * 1024;
const MOST_BYTES = MIB;

interface StoredMessage<N> {
  readonly number: N;
  readonly data: Uint8Array | string;
  readonly bytes: number;
}

/** The messages of one log, oldest first, each with a number that the owner of the log chooses. */
export class MessageLog<N extends number | undefined = number> {
  readonly #budget: EventBudget;
  readonly #most: number;
  readonly #mayDrop: (number: N) => boolean;
  #stored: StoredMessage<N>[] = [];
  #bytes = 0;

  /** At most `most` messages. `mayDrop`: true for a message that makes room for new ones. Default: all do. */
  constructor(budget: EventBudget, most: number, mayDrop: (number: N) => boolean = () => true) {
    this.#budget = budget;
    this.#most = most;
    this.#mayDrop = mayDrop;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Oldest first. */
  get messages(): readonly StoredMessage<N>[] {
    return this.#stored;
  }

  /** Stores a message; the oldest ones make room for it. False when there is no room, even without them. */
  append(number: N, data: Uint8Array | string): boolean {
    const bytes = Buffer.byteLength(data);
    if (bytes > MOST_BYTES || !this.#budget.couldHold(bytes - this.#bytes)) return false;
    while (!this.#findRoom(bytes)) {
      const oldest = this.#stored.findIndex((message) => this.#mayDrop(message.number));
      if (oldest === -1) return false;
      for (const dropped of this.#stored.splice(oldest, 1)) this.#count(-dropped.bytes);
    }
    this.#stored.push({ number, data, bytes });
    this.#count(bytes);
    return true;
  }

  clear(): void {
    this.#count(-this.#bytes);
    this.#stored = [];
  }

  #findRoom(bytes: number): boolean {
    const isWithinBounds = this.#stored.length < this.#most && this.#bytes + bytes <= MOST_BYTES;
    return isWithinBounds && this.#budget.makeRoom(bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.count(bytes);
  }
}

// The memory budget of one session, which is a part of the budget of all sessions. Logs of streams that were probably delivered
// are evictable: they are discarded, oldest first, when other events need their room.

/** Most bytes in all; most bytes and entries of the evictable part. */
interface BudgetBounds {
  readonly bytes: number;
  readonly evictableBytes: number;
  readonly evictables: number;
}

/** For all streams of one session. The evictable part has room for any one stream. */
const OF_SESSION: BudgetBounds = { bytes: 4 * MIB, evictableBytes: MIB, evictables: 64 };
/** For all sessions of one endpoint. A small answer may retain 8 KiB: the buffer that Node cut it from. */
const MOST_OF_ALL = 256 * MIB;
const MOST_EVICTABLES_OF_ALL = 4_096;

/** A counted part that is discarded when its room is needed. */
export interface Evictable {
  /** Constant while it is in the budget's list. */
  readonly bytes: number;
  /** Gives its room back, and leaves the budget's list. */
  discard(): void;
}

/** Bytes that several logs hold together: those of a session, or of all sessions. */
export class EventBudget {
  readonly #bounds: BudgetBounds;
  readonly #parent: EventBudget | undefined;
  #bytes = 0;
  #evictableBytes = 0;
  /** Oldest first. */
  readonly #evictables = new Set<Evictable>();

  constructor(bounds: BudgetBounds, parent?: EventBudget) {
    this.#bounds = bounds;
    this.#parent = parent;
  }

  /** The budget of all sessions. `bytes`: what the memory allows, if that is less than the usual bound. */
  static ofAll(bytes: number = MOST_OF_ALL): EventBudget {
    const most = Math.min(bytes, MOST_OF_ALL);
    const evictableBytes = Math.floor(most / 4);
    return new EventBudget({ bytes: most, evictableBytes, evictables: MOST_EVICTABLES_OF_ALL });
  }

  static ofSession(parent?: EventBudget): EventBudget {
    return new EventBudget(OF_SESSION, parent);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get evictables(): number {
    return this.#evictables.size;
  }

  /** True when so many further bytes fit once everything evictable is discarded. */
  couldHold(bytes: number): boolean {
    const needed = this.#bytes - this.#evictableBytes + bytes;
    return needed <= this.#bounds.bytes && (this.#parent?.couldHold(bytes) ?? true);
  }

  /** Discards evictable entries until so many further bytes fit. False, and nothing is discarded, when that is not enough. */
  makeRoom(bytes: number): boolean {
    if (!this.couldHold(bytes)) return false;
    for (const oldest of this.#evictables) {
      if (this.#bytes + bytes <= this.#bounds.bytes) break;
      oldest.discard();
    }
    return this.#parent?.makeRoom(bytes) ?? true;
  }

  /** Adds bytes; a negative number gives bytes back. */
  count(bytes: number): void {
    this.#bytes += bytes;
    this.#parent?.count(bytes);
  }

  /** Makes a counted part evictable; the oldest parts are discarded when there are too many. */
  addEvictable(part: Evictable): void {
    this.#evictables.add(part);
    this.#evictableBytes += part.bytes;
    this.#parent?.addEvictable(part);
    const { evictableBytes, evictables } = this.#bounds;
    for (const oldest of this.#evictables) {
      if (this.#evictableBytes <= evictableBytes && this.#evictables.size <= evictables) break;
      oldest.discard();
    }
  }

  /** The part is needed again, or gone. Ignored for a part that is not evictable. */
  removeEvictable(part: Evictable): void {
    if (!this.#evictables.delete(part)) return;
    this.#evictableBytes -= part.bytes;
    this.#parent?.removeEvictable(part);
  }
}
