// The stream that a client opens by GET, for messages of its server outside of any call, and the messages that wait for it.
// Each message is written on one stream only; the conversation chooses the stream of a request.
// Source: MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server, #multiple-connections.
import { LIMITS } from '../../domain/limits.ts';
import type { McpReply } from '../endpoint-types.ts';
import { refused } from '../rpc.ts';
import type { EventBudget } from './legacy-event-log.ts';
import { type EventPosition, LegacyStream, type StreamDeps } from './legacy-stream.ts';

/** Distinguishes the keys of its streams from those of calls. */
const KEY_PREFIX = 'get-';

/** True for the key of a stream that was opened by GET. */
export function isListenersKey(key: string): boolean {
  return key.startsWith(KEY_PREFIX);
}

/** What it needs of its session. */
export interface ListenerDeps extends Omit<StreamDeps, 'key' | 'onLost'> {
  /** The client understands events without data: revision 2025-11-25 and later. */
  readonly canPoll: boolean;
  /** Keys of its streams; none comes twice in the process. */
  readonly nextKey: () => string;
  /** Keeps the session alive until the returned function is called. */
  readonly hold: () => () => void;
  /** True while the server still waits for the answer to its question. */
  readonly isPending: (question: number) => boolean;
}

/** The only stream of this kind of a session, and the messages that wait for it. */
export class LegacyListener {
  readonly #deps: ListenerDeps;
  #stream: LegacyStream | undefined;
  #letGo: (() => void) | undefined;
  readonly #waiting: UndeliveredMessages;

  constructor(deps: ListenerDeps) {
    this.#deps = deps;
    this.#waiting = new UndeliveredMessages(deps.budget);
  }

  /** True while there is a stream, or one that its client may come back to. */
  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  /** True while a connection carries the stream. */
  get isLive(): boolean {
    return this.#stream?.isLive === true;
  }

  /** True when messages wait. */
  get hasWaiting(): boolean {
    return !this.#waiting.isEmpty;
  }

  /**
   * Opens the stream, or goes on with it after an event that was on it; one that is not kept any more begins anew. It
   * begins with an event that only carries an id, like the answer to a POST, so that a client which loses it before the
   * first message comes back to what was said meanwhile; servers need not do so here.
   * Throws RpcFailure (409) for a second stream beside an open one.
   */
  open(reply: McpReply, after?: EventPosition): void {
    const stream = this.#stream;
    if (after !== undefined && stream?.key === after.key) {
      this.#hold();
      stream.resume(reply, after.number);
      this.#catchUp(stream);
    } else if (stream?.isLive) {
      throw refused(409, 'Conflict: Only one SSE stream is allowed per session');
    } else {
      stream?.discard();
      this.#begin(reply);
    }
  }

  /** Writes a request of the server. False without an open stream. */
  ask(message: string): boolean {
    if (!this.#stream?.isLive) return false;
    this.#stream.send(message);
    return true;
  }

  /** Writes a notification, or stores it while there is room. */
  notify(message: string): void {
    if (this.#stream?.isLive) this.#stream.notify(message);
    else this.store({ message, question: undefined });
  }

  /** Stores a message until the stream opens; notifications make room for it. False when the message itself has no room. */
  store(message: Undelivered): boolean {
    return this.#waiting.store(message);
  }

  /** Discards a stream whose client did not come back. */
  expire(nowMs: number): void {
    if (this.#stream?.isForsaken(nowMs)) this.close();
  }

  /** Ends the stream and discards all messages. */
  close(): void {
    this.#stream?.discard();
    this.#stream = undefined;
    this.#waiting.takeAll();
    this.#lost();
  }

  #begin(reply: McpReply): void {
    const key = `${KEY_PREFIX}${this.#deps.nextKey()}`;
    const stream = new LegacyStream({ ...this.#deps, key, onLost: () => this.#lost() });
    this.#stream = stream;
    this.#hold();
    stream.begin(reply, this.#deps.canPoll);
    this.#catchUp(stream);
  }

  #catchUp(stream: LegacyStream): void {
    if (!stream.isLive) return;
    for (const { message, question } of this.#waiting.takeAll()) {
      if (question === undefined || this.#deps.isPending(question)) stream.send(message);
    }
  }

  #hold(): void {
    this.#letGo ??= this.#deps.hold();
  }

  #lost(): void {
    this.#letGo?.();
    this.#letGo = undefined;
  }
}

// The messages of a server that wait for its client to open a stream, bounded in number and size. They count in the budget of
// the session.

/** Bytes of all messages that wait in one session. */
const MOST_BYTES = 1024 * 1024;

/** A message that found no stream. */
interface Undelivered {
  readonly message: string;
  /** The id of a request of the server; undefined for a notification, which gives way. */
  readonly question: number | undefined;
}

interface StoredMessage extends Undelivered {
  readonly bytes: number;
}

/** Those of one session, oldest first. */
export class UndeliveredMessages {
  readonly #budget: EventBudget;
  #stored: StoredMessage[] = [];
  #bytes = 0;

  constructor(budget: EventBudget) {
    this.#budget = budget;
  }

  /** True when nothing waits. */
  get isEmpty(): boolean {
    return this.#stored.length === 0;
  }

  /** Stores a message; the oldest notifications make room for it. False when that is not enough. */
  store(message: Undelivered): boolean {
    const bytes = Buffer.byteLength(message.message);
    if (bytes > MOST_BYTES) return false;
    while (!this.#findRoom(bytes)) {
      const oldest = this.#stored.findIndex(({ question }) => question === undefined);
      if (oldest === -1) return false;
      for (const dropped of this.#stored.splice(oldest, 1)) this.#count(-dropped.bytes);
    }
    this.#stored.push({ ...message, bytes });
    this.#count(bytes);
    return true;
  }

  /** Removes and returns all messages, oldest first. */
  takeAll(): readonly Undelivered[] {
    const taken = this.#stored;
    this.#stored = [];
    this.#count(-this.#bytes);
    return taken;
  }

  #findRoom(bytes: number): boolean {
    const isBelow = this.#stored.length < LIMITS.undeliveredMessages && this.#bytes + bytes <= MOST_BYTES;
    return isBelow && this.#budget.makeRoom(bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.count(bytes);
  }
}
