// The stream that a client opens by GET, for messages of its server outside of any call, and the messages that wait for it.
// Each message is written on one stream only; the conversation chooses the stream of a request.
// Source: MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server, #multiple-connections.

import { LIMITS } from '../../domain/limits.ts';
import type { ServerNotification } from '../../domain/mcp/client.ts';
import { announcesChanges, LIST_NOTICES, NOTICED_LISTS } from '../../domain/mcp/mcp.ts';
import type { AnySessionValue } from '../../domain/sessions/session-value.ts';
import type { McpSession } from '../endpoint-backends.ts';
import type { McpReply } from '../endpoint-types.ts';
import { refused } from '../rpc.ts';
import { canPoll, versionOf } from './legacy-request.ts';
import { type EventPosition, LegacyStream, MessageLog, type SessionStreamDeps } from './legacy-stream.ts';

/** Distinguishes the keys of its streams from those of calls. */
const KEY_PREFIX = 'get-';

/** In place of the id of a request; ids of requests are greater. */
const NOTIFICATION = 0;

/** True for the key of a stream that was opened by GET. */
export function isListenerKey(key: string): boolean {
  return key.startsWith(KEY_PREFIX);
}

interface ListenerDeps extends SessionStreamDeps {
  readonly nextKey: () => string;
  /** True while the server still waits for the answer to its question. */
  readonly isPending: (question: number) => boolean;
}

/** The only stream of this kind of a session, and the messages that wait for it. */
export class LegacyListener {
  readonly #session: McpSession;
  readonly #deps: ListenerDeps;
  #stream: LegacyStream | undefined;
  #release: (() => void) | undefined;
  /** By the id of a request of the server, or NOTIFICATION. */
  readonly #waiting: MessageLog;

  constructor(session: McpSession, deps: ListenerDeps) {
    this.#session = session;
    this.#deps = deps;
    this.#waiting = new MessageLog(deps, LIMITS.undeliveredMessages, false);
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
   * Opens the stream, or resumes it after an event that was on it; one that is not stored any more begins anew. It begins with an
   * event that only carries an id, like the answer to a POST, so that a client which loses it before the first message can resume it;
   * the protocol does not require that here. Throws RpcFailure (409) for a second stream beside an open one.
   */
  open(reply: McpReply, after?: EventPosition): void {
    const stream = this.#stream;
    if (after !== undefined && stream?.key === after.key) {
      this.#hold();
      stream.resume(reply, after.number);
      this.#sendWaiting(stream);
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
    else this.store(message);
  }

  /** Stores a notification, or the request with that id, until the stream opens. False when it has no room. */
  store(message: string, question = NOTIFICATION): boolean {
    return this.#waiting.append(question, message);
  }

  /** Discards a stream whose client did not resume it. */
  expire(nowMs: number): void {
    if (this.#stream?.isAbandoned(nowMs)) this.close();
  }

  /** Ends the stream and discards all messages. */
  close(): void {
    this.#stream?.discard();
    this.#stream = undefined;
    this.#waiting.clear();
    this.#unhold();
  }

  #begin(reply: McpReply): void {
    const key = `${KEY_PREFIX}${this.#deps.nextKey()}`;
    const stream = new LegacyStream({ ...this.#deps, key, onLost: () => this.#unhold() });
    this.#stream = stream;
    this.#hold();
    stream.begin(reply, canPoll(versionOf(this.#session)));
    this.#sendWaiting(stream);
  }

  #sendWaiting(stream: LegacyStream): void {
    if (!stream.isLive) return;
    const waiting = this.#waiting.messages;
    this.#waiting.clear();
    for (const { data, number: question } of waiting) {
      if (question === NOTIFICATION || this.#deps.isPending(question)) stream.send(data);
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

/** A change of each list that the client was told of, and of each resource that it has subscribed to. */
export function missedBy({
  greeted,
  uris,
}: AnySessionValue): Pick<ServerNotification, 'method' | 'params'>[] {
  const lists = NOTICED_LISTS.filter((list) => announcesChanges(greeted?.capabilities ?? {}, list));
  return [
    ...lists.map((list) => ({ method: LIST_NOTICES[list], params: {} })),
    ...Object.values(uris)
      .flat()
      .map((uri) => ({ method: 'notifications/resources/updated', params: { uri } })),
  ];
}
