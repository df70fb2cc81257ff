// Writes the answer of the MCP endpoint to one HTTP request: one body, none, or an event stream. src/protocol makes the messages.

import { asGatewayError } from '../../domain/errors/errors.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { type McpLog, type McpStream, noteError, type ReplyWriter } from '../../protocol/endpoint-types.ts';
import { idOfAnswer, type RpcFailure, rpcFailureOf } from '../../protocol/rpc.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext } from '../context.ts';
import type { HttpRequest } from '../request.ts';
import { type EventStreams, OpenStream, soleEvent } from '../sse/event-stream.ts';
import { errorReply } from './error-reply.ts';
import { type BytesReply, bytes } from './reply.ts';
import { lengthOf, respond } from './respond.ts';

/** Writes one answer. Further answers, and answers after a disconnect, are dropped. */
export class HttpReplyWriter implements ReplyWriter {
  readonly #context: HttpContext;
  readonly #streams: EventStreams;
  readonly #request: Pick<HttpRequest, 'onLost'>;
  #stream: OpenStream | undefined;
  #goneListeners: (() => void)[] | undefined;

  constructor(context: HttpContext, streams: EventStreams, request: Pick<HttpRequest, 'onLost'>) {
    this.#context = context;
    this.#streams = streams;
    this.#request = request;
  }

  get log(): McpLog {
    return this.#context.state;
  }

  json(status: number, body: Uint8Array | string, headers: readonly string[] = []): void {
    this.#write({ kind: 'bytes', status, bytes: body, headers });
  }

  /** A complete stream of one event, which needs no headers against buffering. */
  event(data: Uint8Array | string, headers: readonly string[] = []): void {
    const bytes = soleEvent(data);
    this.#write({ kind: 'bytes', status: 200, bytes, type: EVENT_STREAM_TYPE, headers }, data);
  }

  empty(status: number): void {
    this.#write({ kind: 'bytes', status });
  }

  stream(): McpStream {
    const { res: response } = this.#context;
    if (response.headersSent || response.destroyed) return CLOSED_STREAM;
    // MCP has no message for a revocation. The endpoint treats a revoked caller as disconnected: its calls are
    // cancelled, or wait for it to reconnect. Before the app stops, all calls are answered.
    this.#stream = new OpenStream(this.#context, this.#streams, () => this.#notifyGone());
    return this.#stream;
  }

  onGone(listener: () => void): void {
    if (this.#goneListeners !== undefined) {
      this.#goneListeners.push(listener);
      return;
    }
    this.#goneListeners = [listener];
    this.#request.onLost((reason) => this.#lost(reason));
  }

  /** The client has disconnected, or its caller may not make the request any more. */
  #lost(reason: Error): void {
    if (reason instanceof ClientGone) {
      this.#notifyGone();
      return;
    }
    const error = asGatewayError(reason);
    if (this.#stream !== undefined) {
      this.#stream.revoke(error);
      return;
    }
    this.#notifyGone();
    const { res: response, state } = this.#context;
    if (response.headersSent) return;
    if (error.status !== 401 && error.status !== 403) {
      respond(this.#context, this.#failed(rpcFailureOf(error, null)));
      return;
    }
    state.errorCode = error.code;
    const challenge = state.challenge?.(this.#context, error);
    respond(this.#context, errorReply(error, state.requestId, { viewer: state.principal, challenge }));
  }

  #notifyGone(): void {
    const listeners = this.#goneListeners;
    this.#goneListeners = undefined;
    for (const listener of listeners ?? []) listener();
  }

  #write(reply: BytesReply, message = reply.bytes ?? ''): void {
    const { unread } = this.#streams;
    const refusal = unread.refusalOf(this.#context, lengthOf(message));
    const failure = refusal && rpcFailureOf(refusal, idOfAnswer(message));
    respond(this.#context, failure === undefined ? reply : this.#failed(failure));
    unread.count(this.#context);
  }

  #failed({ status, error, errorCode, body, headers }: RpcFailure): BytesReply {
    noteError(this.log, error.code, errorCode);
    return bytes(status, body, { headers });
  }
}

const CLOSED_STREAM: McpStream = { send: () => {}, end: () => {}, unsentBytes: 0 };
