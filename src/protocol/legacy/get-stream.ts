// The stream that a client opens by GET for messages outside of calls, and the messages that wait for it. Each message
// is written on one stream only; LegacyTraffic chooses the stream of a request. Source: MCP 2025-11-25
// basic/transports#listening-for-messages-from-the-server, #multiple-connections.

import { LIMITS } from '../../domain/limits.ts';
import { announcesChanges, LIST_NOTICES, NOTICED_LISTS, RESOURCE_UPDATED } from '../../domain/mcp/mcp.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { AnySessionValue } from '../../domain/sessions/session-value.ts';
import type { ReplyWriter } from '../endpoint-types.ts';
import { notificationMessage, refused } from '../rpc.ts';
import { canPoll, versionOf } from './legacy-request.ts';
import { type EventPosition, LegacyStream, MessageLog, type SessionStreamOptions } from './legacy-stream.ts';

/** Distinguishes the keys of these streams from those of calls. */
const KEY_PREFIX = 'get-';

/** Stands in place of a request id for notifications; request ids are greater. */
const NOTIFICATION = 0;

/** True for the key of a stream that was opened by GET. */
export function isGetStreamKey(key: string): boolean {
  return key.startsWith(KEY_PREFIX);
}

/** The dependencies of a GetStream: those of its LegacyStreams and its own. */
export interface GetStreamOptions extends SessionStreamOptions {
  /** The sessions whose clients have opened such a stream in this life. This set outlives the GetStream. */
  readonly listened: WeakSet<McpSession>;
  readonly nextKey: () => string;
  /** True while the server still waits for the answer to this question. */
  readonly isPending: (question: number) => boolean;
}

/**
 * The one stream for messages outside of calls in a session, and the messages that wait for it. A client gets each message once;
 * where messages are not stored any more, it gets notices of possible changes instead: see ADR 350.
 */
export class GetStream {
  readonly #session: McpSession;
  readonly #options: GetStreamOptions;
  #stream: LegacyStream | undefined;
  #release: (() => void) | undefined;
  /** The waiting messages, by the id of the server's request, or NOTIFICATION. */
  readonly #waiting: MessageLog;
  /** True when a notification was dropped, because there was no room or the client read too slowly. */
  #hasDropped = false;

  constructor(session: McpSession, options: GetStreamOptions) {
    this.#session = session;
    this.#options = options;
    this.#waiting = new MessageLog(options, { most: LIMITS.undeliveredMessages, dropsOldest: false });
    this.#waiting.own();
  }

  /** True while there is a stream, or one that its client may resume. */
  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  get isLive(): boolean {
    return this.#stream?.isLive === true;
  }

  get hasWaiting(): boolean {
    return this.#waiting.messages.length > 0;
  }

  /**
   * Opens the stream, or resumes it after one of its events; a stream that is not stored any more begins again. Its
   * first event only carries an id, as in the answer to a POST, so that a client that loses the stream before the
   * first message can resume it; the protocol does not require that here. Throws RpcFailure (409) for a second stream
   * beside an open one.
   */
  open(reply: ReplyWriter, after?: EventPosition): void {
    const stream = this.#stream;
    const isOfThisLife = after?.generation === this.#options.generation;
    if (isOfThisLife && stream?.key === after.key) {
      this.#hold();
      if (!stream.resume(reply, after.number)) this.#hasDropped = true;
      this.#goOn(stream);
    } else if (stream?.isLive) {
      throw refused(409, 'Conflict: Only one SSE stream is allowed per session');
    } else {
      if (after !== undefined || this.#mayHaveLost(stream)) this.#hasDropped = true;
      stream?.discard();
      this.#begin(reply);
    }
  }

  /** Writes a request of the server. Returns false without an open stream. */
  ask(message: string): boolean {
    if (!this.#stream?.isLive) return false;
    this.#stream.send(message);
    return true;
  }

  /** Writes a notification, or stores it while there is room. */
  notify(message: string): void {
    const isTaken = this.#stream?.isLive ? this.#stream.notify(message) : this.store(message);
    if (!isTaken) this.#hasDropped = true;
  }

  /**
   * Stores a notification, or the request with id `question`, until the stream opens. Returns false when there is no
   * room.
   */
  store(message: string, question = NOTIFICATION): boolean {
    return this.#waiting.append(question, message);
  }

  /**
   * Discards a stream that its client did not resume in time. Sends notices of possible changes to a client that has read too
   * slowly, once it reads again.
   */
  sweep(nowMs: number): void {
    if (this.#stream?.isAbandoned(nowMs)) this.close();
    else if (this.#stream?.isLive) this.#noticeMissed(this.#stream);
  }

  /** Ends the stream and discards all messages. */
  close(): void {
    this.#stream?.discard();
    this.#stream = undefined;
    this.#waiting.clear();
    this.#unhold();
  }

  #begin(reply: ReplyWriter): void {
    const key = `${KEY_PREFIX}${this.#options.nextKey()}`;
    const stream = new LegacyStream({ ...this.#options, key, onLost: () => this.#unhold() });
    this.#stream = stream;
    this.#hold();
    this.#options.listened.add(this.#session);
    stream.begin(reply, canPoll(versionOf(this.#session)));
    this.#goOn(stream);
  }

  /**
   * True when the client may have lost messages before this stream: those of the previous one, of which it has
   * no event, or unknown ones. Only the first stream of a session that began in this life misses nothing.
   */
  #mayHaveLost(before: LegacyStream | undefined): boolean {
    if (before !== undefined) return before.hasMessages;
    return this.#options.listened.has(this.#session) || this.#session.generation !== undefined;
  }

  #goOn(stream: LegacyStream): void {
    this.#noticeMissed(stream);
    this.#sendWaiting(stream);
  }

  /** Sends, after a loss of messages, a change of each announced list, and an update of each subscribed resource. */
  #noticeMissed(stream: LegacyStream): void {
    if (!this.#hasDropped || stream.isSlow) return;
    this.#hasDropped = false;
    for (const notice of missedBy(this.#session.value)) stream.send(notice);
  }

  #sendWaiting(stream: LegacyStream): void {
    if (!stream.isLive) return;
    const waiting = this.#waiting.messages;
    this.#waiting.clear();
    for (const { data, number: question } of waiting) {
      if (question === NOTIFICATION || this.#options.isPending(question)) stream.send(data);
    }
  }

  #hold(): void {
    this.#release ??= this.#session.hold();
  }

  #unhold(): void {
    this.#release?.();
    this.#release = undefined;
  }
}

/** The notices for a client that may have missed messages of its server. */
export function missedBy({ greeted, uris }: AnySessionValue): readonly string[] {
  const lists = NOTICED_LISTS.filter((list) => announcesChanges(greeted?.capabilities ?? {}, list));
  return [
    ...lists.map((list) => notificationMessage(LIST_NOTICES[list], {})),
    ...Object.values(uris)
      .flat()
      .map((uri) => notificationMessage(RESOURCE_UPDATED, { uri })),
  ];
}
