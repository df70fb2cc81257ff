// The answer to one POST with requests: an event stream. A single answer that nothing went before is written as one,
// whole; else it goes on until the last answer. A batch has several answers, each of which is sent when it comes.
// Source: MCP 2025-03-26 and later basic/transports#sending-messages-to-the-server; the SDK's servers.

import type { ErrorCode } from '../../domain/errors.ts';
import type { SentTo, Tracker } from '../../domain/exchange.ts';
import type { JsonRpcId } from '../../domain/jsonrpc.ts';
import type { McpReply } from '../endpoint-types.ts';
import type { LegacyStream } from './legacy-stream.ts';

/** Opens the event stream of a POST. */
export type StreamFactory = () => LegacyStream;

/** Answers one POST: at once, or over a stream. */
export class LegacyPost implements Tracker {
  /** As a Tracker of its requests. */
  sentTo: SentTo | undefined;
  readonly #reply: McpReply;
  readonly #openStream: StreamFactory;
  readonly #canPoll: boolean;
  #awaited: number;
  #hasAnswered = false;
  #stream: LegacyStream | undefined;
  /** The client left before it got an event id to come back with: nothing reaches it any more. */
  #isDeaf = false;
  #isNamed = false;

  /** `awaited`: answers that will come. `canPoll`: its client understands what polling needs (legacy-request.ts). */
  constructor(reply: McpReply, openStream: StreamFactory, awaited: number, canPoll: boolean) {
    this.#reply = reply;
    this.#openStream = openStream;
    this.#awaited = awaited;
    this.#canPoll = canPoll;
  }

  /** True while a connection of the client carries it. Without a stream yet the connection counts as open. */
  get isLive(): boolean {
    return this.#stream?.isLive ?? !this.#isDeaf;
  }

  /** Notes the instance that answers; the first one counts. */
  from(instanceId: string): void {
    if (this.#isNamed) return;
    this.#isNamed = true;
    this.#reply.from(instanceId);
  }

  /** Begins its event stream without a message. */
  open(): void {
    this.#begun();
  }

  /** Sends a notification about one of its requests, before the answer. */
  notify(message: string): void {
    this.#begun()?.notify(message);
  }

  /** Sends a message that only matters on a stream that has begun. */
  add(message: string): void {
    this.#stream?.notify(message);
  }

  /** Sends a request of the server. False when it cannot reach the client here. */
  ask(message: string): boolean {
    const stream = this.#begun();
    stream?.send(message);
    return stream !== undefined;
  }

  /** The backend wants to be polled: it takes long. A client that can poll gets the same; for others a stream stays open. */
  interrupted(retryMs: number | undefined): void {
    if (!this.#canPoll) this.#begun();
    else if (this.#stream !== undefined) this.#stream.suspend(retryMs);
    else if (!this.#isDeaf) this.#begin((stream) => stream.beginSuspended(this.#reply, retryMs));
  }

  /** One of the awaited answers. `status` is for a single answer that nothing went before; over 200 it is plain JSON. */
  answer(message: Uint8Array | string, id: JsonRpcId, status = 200): void {
    this.#awaited -= 1;
    const isLast = this.#awaited === 0;
    if (!isLast || this.#stream !== undefined || this.#isDeaf) {
      this.#hasAnswered = true;
      this.#begun()?.answer(message, id, isLast);
    } else if (status === 200) {
      this.#reply.event(message);
    } else {
      this.#reply.json(status, message);
    }
  }

  /** One of the answers is an error of that code: for the log. */
  fails(code: number, errorCode?: ErrorCode): void {
    this.#reply.fails(code, errorCode);
  }

  /**
   * One of the awaited answers will not come: its request was cancelled. Without any other the POST ends as an event
   * stream with nothing in it, since it may neither be answered nor stay open.
   */
  skip(): void {
    this.#awaited -= 1;
    if (this.#awaited > 0 || this.#isDeaf) return;
    if (this.#stream === undefined) this.#reply.stream().end();
    // A client that is not answered must not find a stream to come back to, or it comes back for ever.
    else if (this.#hasAnswered) this.#stream.finish();
    else this.#stream.discard();
  }

  /** The stream; undefined when the client is not there to see it begin. */
  #begun(): LegacyStream | undefined {
    if (this.#stream !== undefined || this.#isDeaf) return this.#stream;
    return this.#begin((stream) => stream.begin(this.#reply, this.#canPoll));
  }

  #begin(begin: (stream: LegacyStream) => boolean): LegacyStream | undefined {
    const stream = this.#openStream();
    if (begin(stream)) {
      this.#stream = stream;
      return stream;
    }
    this.#isDeaf = true;
    stream.discard();
    return undefined;
  }
}
