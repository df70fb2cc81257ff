// The answer of the MCP endpoint to one HTTP request, written to its response.
// The endpoint decides what is said (src/protocol); this file knows sockets, and the headers that every answer has.

import type { ErrorCode } from '../domain/error-codes.ts';
import type { McpReply, McpStream } from '../protocol/endpoint-types.ts';
import { whenGone } from './client-gone.ts';
import { commonHeaders } from './common-headers.ts';
import type { HttpContext } from './context.ts';
import type { EventStreams } from './event-stream.ts';
import { HttpMcpStream, soleEvent } from './mcp-stream.ts';
import { noteFailure } from './note-failure.ts';
import type { BytesReply, EmptyReply } from './reply.ts';
import { respond } from './respond.ts';
import { EVENT_STREAM_HEADERS, EVENT_STREAM_TYPE } from './server-sent-events.ts';

/** Writes one answer; what comes after it, or after the client left, is dropped. */
export class HttpMcpReply implements McpReply {
  readonly #context: HttpContext;
  readonly #streams: EventStreams;
  #instanceId: string | undefined;
  /** Who hears that the client is gone, once. */
  #leaving: (() => void)[] | undefined;

  constructor(context: HttpContext, streams: EventStreams) {
    this.#context = context;
    this.#streams = streams;
    // Koa would answer by itself when the endpoint takes its time.
    context.respond = false;
  }

  json(status: number, body: Uint8Array | string, headers: readonly string[] = []): void {
    this.#write({ kind: 'bytes', status, bytes: body, headers });
  }

  /** Without what keeps a stream flowing: there is nothing of it that somebody could hold back. */
  event(data: Uint8Array | string, headers: readonly string[] = []): void {
    this.#write({ kind: 'bytes', status: 200, bytes: soleEvent(data), type: EVENT_STREAM_TYPE, headers });
  }

  empty(status: number, headers: readonly string[] = []): void {
    this.#write({ kind: 'empty', status, headers });
  }

  stream(headers: readonly string[] = []): McpStream {
    const { res: response, state } = this.#context;
    if (response.headersSent || response.destroyed) return NOBODY_LISTENS;
    const all = [...EVENT_STREAM_HEADERS, ...commonHeaders(state, true), ...headers];
    if (this.#instanceId !== undefined) all.push('X-Instance-ID', this.#instanceId);
    response.writeHead(200, all);
    // Whoever may not have it any more has left, as far as the endpoint goes: calls are cancelled or wait for a return.
    return new HttpMcpStream(this.#context, this.#streams, () => this.#leave());
  }

  onGone(listener: () => void): void {
    if (this.#leaving !== undefined) {
      this.#leaving.push(listener);
      return;
    }
    this.#leaving = [listener];
    whenGone(this.#context.res, () => this.#leave());
  }

  from(instanceId: string): void {
    this.#instanceId = instanceId;
    this.#context.state.instanceId = instanceId;
  }

  asks(method: string): void {
    this.#context.state.rpcMethod = method;
  }

  batches(messages: number): void {
    this.#context.state.rpcMessages = messages;
  }

  fails(code: number, errorCode?: ErrorCode): void {
    noteFailure(this.#context.state, code, errorCode);
  }

  opens(sessionId: string): void {
    this.#context.state.sessionId = sessionId;
  }

  #leave(): void {
    const listeners = this.#leaving;
    this.#leaving = undefined;
    for (const listener of listeners ?? []) listener();
  }

  #write(reply: BytesReply | EmptyReply): void {
    const instanceId = this.#instanceId;
    respond(this.#context, instanceId === undefined ? reply : { ...reply, instanceId });
    this.#streams.unread.count(this.#context);
  }
}

const NOBODY_LISTENS: McpStream = { send: () => {}, end: () => {}, unsentBytes: 0 };
