// Stored events of streams, for clients that lost their connection or have not opened a stream yet: a log per stream, and the bounds
// of their memory per session and endpoint. Source: MCP 2025-11-25 basic/transports#resumability-and-redelivery; ADR 30.

import { ByteBudget } from '../../domain/held-bytes.ts';

const MIB = 1024 * 1024;
/** Of one log. */
const MOST_LOG_BYTES = MIB;
/** Of one session, without its spare streams. */
const MOST_SESSION_BYTES = 4 * MIB;
/** Of all sessions of one endpoint: a quarter is for spare streams. */
const MOST_BYTES = 256 * MIB;
/** A small answer may retain 8 KiB: the buffer that Node cut it from. */
const MOST_SPARE_STREAMS = 4_096;

/** Where the bytes of a log count. */
export interface LogDeps {
  readonly memory: EventMemory;
  readonly sessionId: string;
}

interface StoredMessage {
  readonly number: number;
  readonly data: Uint8Array | string;
  readonly bytes: number;
}

/** The messages of one log, oldest first, each with a number that the owner of the log chooses. */
export class MessageLog {
  readonly #budget: ByteBudget;
  readonly #sessionId: string;
  readonly #most: number;
  readonly #dropsOldest: boolean;
  /** Oldest first. */
  messages: StoredMessage[] = [];
  bytes = 0;

  /** At most `most` messages. `dropsOldest`: the oldest messages make room for new ones. */
  constructor({ memory, sessionId }: LogDeps, most: number, dropsOldest = true) {
    this.#budget = memory.needed;
    this.#sessionId = sessionId;
    this.#most = most;
    this.#dropsOldest = dropsOldest;
  }

  /** Stores a message. False when there is no room. */
  append(number: number, data: Uint8Array | string): boolean {
    const bytes = Buffer.byteLength(data);
    if (bytes > MOST_LOG_BYTES) return false;
    while (!this.#takeRoom(bytes)) {
      const oldest = this.#dropsOldest ? this.messages.shift() : undefined;
      if (oldest === undefined) return false;
      this.bytes -= oldest.bytes;
      this.#budget.add(this.#sessionId, -oldest.bytes);
    }
    this.messages.push({ number, data, bytes });
    this.bytes += bytes;
    return true;
  }

  clear(): void {
    this.#budget.add(this.#sessionId, -this.bytes);
    this.messages = [];
    this.bytes = 0;
  }

  #takeRoom(bytes: number): boolean {
    const isWithinBounds = this.messages.length < this.#most && this.bytes + bytes <= MOST_LOG_BYTES;
    return isWithinBounds && this.#budget.take(this.#sessionId, bytes);
  }
}

/** A stream whose client has probably received all events. Only the bound of spare streams applies to it. */
export interface SpareStream {
  readonly sessionId: string;
  /** Constant while it is spare. */
  readonly bytes: number;
  /** Discards its events; it is not spare any more. */
  discard(): void;
}

/** The events of all sessions of one endpoint. */
export class EventMemory {
  /** Bytes of needed events, by session. */
  readonly needed: ByteBudget;
  readonly #mostSpareBytes: number;
  readonly #spare = new Set<SpareStream>();
  #spareBytes = 0;

  /** `bytes`: what the memory of the process allows, if that is less than the usual bound. */
  constructor(bytes: number = MOST_BYTES) {
    const most = Math.min(bytes, MOST_BYTES);
    this.#mostSpareBytes = Math.floor(most / 4);
    this.needed = new ByteBudget({ totalBytes: most - this.#mostSpareBytes, ownerBytes: MOST_SESSION_BYTES });
  }

  /** The bytes of the stream count as spare from now on; the oldest streams are discarded to make room for it. */
  addSpare(stream: SpareStream): void {
    this.needed.add(stream.sessionId, -stream.bytes);
    this.#spare.add(stream);
    this.#spareBytes += stream.bytes;
    for (const oldest of this.#spare) {
      if (this.#spareBytes <= this.#mostSpareBytes && this.#spare.size <= MOST_SPARE_STREAMS) break;
      oldest.discard();
    }
  }

  /** The bytes of the stream count for its session again. No effect for a stream that is not spare. */
  deleteSpare(stream: SpareStream): void {
    if (!this.#spare.delete(stream)) return;
    this.#spareBytes -= stream.bytes;
    this.needed.add(stream.sessionId, stream.bytes);
  }
}
