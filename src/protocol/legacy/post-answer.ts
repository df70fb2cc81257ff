// The answer to one POST with requests, as an event stream. A single answer without earlier messages is written as a
// complete stream; otherwise the stream stays open until the last answer. The answers of a batch are sent as they come.
// Source: MCP 2025-03-26 and later basic/transports#sending-messages-to-the-server; the SDK's servers.

import type { JsonRpcId } from '../../domain/mcp/jsonrpc.ts';
import type { McpLog, ReplyWriter } from '../endpoint-types.ts';
import type { LegacyStream } from './legacy-stream.ts';

/** Answers one POST: at once, or over a stream. */
export class PostAnswer {
  readonly #reply: ReplyWriter;
  /** The log of the HTTP request; when several instances answer, the first one is logged. */
  readonly log: McpLog;
  readonly #openStream: (request: JsonRpcId | undefined) => LegacyStream;
  /** The id of the request, if the POST has only one. */
  readonly #request: JsonRpcId | undefined;
  readonly #canPoll: boolean;
  #awaited: number;
  #hasAnswered = false;
  #stream: LegacyStream | undefined;
  /** True when the client left before it got an event id to resume with: no answer can reach it. */
  #isGone = false;

  /** `requests`: the requests that will be answered. `canPoll`: see legacy-request.ts. */
  constructor(
    reply: ReplyWriter,
    openStream: (request: JsonRpcId | undefined) => LegacyStream,
    requests: readonly { readonly id: JsonRpcId }[],
    canPoll: boolean,
  ) {
    this.#reply = reply;
    this.log = reply.log;
    this.#openStream = openStream;
    this.#awaited = requests.length;
    this.#request = requests.length === 1 ? requests[0]?.id : undefined;
    this.#canPoll = canPoll;
  }

  /** True while a connection carries the stream, and before the stream has begun. */
  get isLive(): boolean {
    return this.#stream?.isLive ?? !this.#isGone;
  }

  /**
   * The event stream, which begins if necessary, by default with the usual first event; undefined when the
   * client has left.
   */
  open(hasFirstEvent = this.#canPoll): LegacyStream | undefined {
    if (this.#stream !== undefined || this.#isGone) return this.#stream;
    const stream = this.#openStream(this.#request);
    this.#isGone = !stream.begin(this.#reply, hasFirstEvent);
    if (this.#isGone) stream.discard();
    else this.#stream = stream;
    return this.#stream;
  }

  /** Sends a notification only if the stream has begun. */
  notifyIfBegun(message: string): void {
    this.#stream?.notify(message);
  }

  /** Sends a request of the server. Returns false when it cannot reach the client on this stream. */
  ask(message: string): boolean {
    const stream = this.open();
    if (!stream?.isReachable) return false;
    stream.send(message);
    return true;
  }

  /**
   * Called when the backend has closed its stream and wants to be polled. A client that can poll polls, too; for others
   * the stream stays open.
   */
  interrupted(retryMs: number | undefined): void {
    const stream = this.open(false); // one event has the id and the waiting time
    if (this.#canPoll) stream?.suspend(retryMs);
  }

  /**
   * Sends one of the awaited answers. `status`: for a single answer without earlier messages; with one other than 200
   * it is plain JSON.
   */
  answer(message: Uint8Array | string, id: JsonRpcId, status = 200): void {
    this.#awaited -= 1;
    const isLast = this.#awaited === 0;
    if (!isLast || this.#stream !== undefined || this.#isGone) {
      this.#hasAnswered = true;
      this.open()?.answer(message, id, isLast);
    } else if (status === 200) {
      this.#reply.event(message);
    } else {
      this.#reply.json(status, message);
    }
  }

  /**
   * Reports that one of the awaited answers will not come, because its request was cancelled. If no other one is
   * awaited, the POST ends as an empty event stream, since it may neither be answered nor be left open.
   */
  skip(): void {
    this.#awaited -= 1;
    if (this.#awaited > 0 || this.#isGone) return;
    if (this.#stream === undefined) this.#reply.stream().end();
    // A client that gets no answer must not find a stream to resume, or it resumes it for ever.
    else if (this.#hasAnswered) this.#stream.finish();
    else this.#stream.discard();
  }
}
