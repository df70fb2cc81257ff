// Writes the answer of the MCP endpoint to one HTTP request: one body, none, or an event stream. src/protocol makes the messages.

import type { ServerResponse } from 'node:http';
import { LIMITS } from '../../domain/limits.ts';
import type { McpEvent, McpLog, McpReply, McpStream } from '../../protocol/endpoint-types.ts';
import type { BytesReply } from '../reply.ts';
import { type HttpContext, whenGone } from '../request.ts';
import { commonHeaders, respond } from '../respond.ts';
import { limitReader } from '../unread-answers.ts';
import {
  commentText,
  END,
  EVENT_STREAM_HEADERS,
  EVENT_STREAM_TYPE,
  type EventStreams,
  inLines,
  type TrackedStream,
  writeEvent,
} from './event-stream.ts';

/** Writes one answer. Further answers, and answers after a disconnect, are dropped. */
export class HttpMcpReply implements McpReply {
  readonly #context: HttpContext;
  readonly #streams: EventStreams;
  #goneListeners: (() => void)[] | undefined;

  constructor(context: HttpContext, streams: EventStreams) {
    this.#context = context;
    this.#streams = streams;
  }

  get log(): McpLog {
    return this.#context.state;
  }

  json(status: number, body: Uint8Array | string, headers: readonly string[] = []): void {
    this.#write({ kind: 'bytes', status, bytes: body, headers });
  }

  /** A complete stream of one event, which needs no headers against buffering. */
  event(data: Uint8Array | string, headers: readonly string[] = []): void {
    this.#write({ kind: 'bytes', status: 200, bytes: soleEvent(data), type: EVENT_STREAM_TYPE, headers });
  }

  empty(status: number): void {
    this.#write({ kind: 'bytes', status });
  }

  stream(): McpStream {
    const { res: response, state } = this.#context;
    if (response.headersSent || response.destroyed) return CLOSED_STREAM;
    response.writeHead(200, [...EVENT_STREAM_HEADERS, ...commonHeaders(state, true)]);
    // The endpoint treats a revoked caller as disconnected: its calls are cancelled, or wait for it to reconnect.
    return new HttpMcpStream(this.#context, this.#streams, () => this.#notifyGone());
  }

  onGone(listener: () => void): void {
    if (this.#goneListeners !== undefined) {
      this.#goneListeners.push(listener);
      return;
    }
    this.#goneListeners = [listener];
    whenGone(this.#context.res, () => this.#notifyGone());
  }

  #notifyGone(): void {
    const listeners = this.#goneListeners;
    this.#goneListeners = undefined;
    for (const listener of listeners ?? []) listener();
  }

  #write(reply: BytesReply): void {
    respond(this.#context, reply);
    this.#streams.unread.count(this.#context);
  }
}

const CLOSED_STREAM: McpStream = { send: () => {}, end: () => {}, unsentBytes: 0 };

/**
 * An open event stream of the MCP endpoint. It ends with the app, when its client reads nothing for too long, or when its caller is
 * revoked.
 */
export class HttpMcpStream implements McpStream, TrackedStream {
  readonly #context: HttpContext;
  readonly #response: ServerResponse;
  readonly #streams: EventStreams;
  readonly #release: () => void;
  readonly #onRevoked: () => void;
  #isOpen = true;

  constructor(context: HttpContext, streams: EventStreams, onRevoked: () => void = () => {}) {
    const { res: response } = context;
    this.#context = context;
    this.#response = response;
    this.#streams = streams;
    this.#onRevoked = onRevoked;
    this.#release = streams.track(this, context);
    response.once('close', () => this.#leave());
    limitReader(response, streams.unreadMs);
    // The client waits for the head: it is sent with the first event, or in the next tick.
    process.nextTick(() => {
      if (this.#isOpen) response.flushHeaders();
    });
  }

  /** Includes the writes of this turn of the event loop, at whose end Node sends them. */
  get unsentBytes(): number {
    return this.#response.writableLength;
  }

  send({ data, id, retryMs, name }: McpEvent): void {
    if (!this.#isOpen) return;
    const response = this.#response;
    // A safeguard: senders respect `unsentBytes`. A single message of any size is accepted.
    if (response.writableLength > LIMITS.backendMessageBytes) {
      response.destroy();
      return;
    }
    const head = headOf(name ?? (data.length > 0 ? 'message' : undefined), id, retryMs);
    writeEvent(response, head, data);
    this.#streams.unread.count(this.#context);
  }

  end(): void {
    if (!this.#isOpen) return;
    this.#leave();
    this.#response.end();
  }

  /** Keeps the connection alive; unnecessary while other bytes wait. */
  comment(text: string): void {
    if (this.#isOpen && this.#response.writableLength === 0) this.#response.write(commentText(text));
  }

  /** MCP has no message for a revocation: the client reconnects and gets the error. Before the app stops, all calls are answered. */
  revoke(): void {
    this.end();
    this.#onRevoked();
  }

  #leave(): void {
    this.#isOpen = false;
    this.#release();
  }
}

/**
 * Everything before the data. An event without data only has an id and no name, so that clients that read only the name do not
 * take it for a message. Source: MCP 2025-11-25 basic/transports, "Sending Messages".
 */
function headOf(event: string | undefined, id: string | undefined, retryMs: number | undefined): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  const wait = retryMs === undefined ? '' : `retry: ${Math.round(retryMs)}\n`;
  return `${name}${idLine}${wait}data: `;
}

const SOLE_HEAD = headOf('message', undefined, undefined);
const SOLE_HEAD_BYTES = Buffer.from(SOLE_HEAD);
const END_BYTES = Buffer.from(END);

/** A complete stream of one event without an id. */
export function soleEvent(data: Uint8Array | string): Uint8Array | string {
  const lines = inLines(data);
  if (typeof lines === 'string') return `${SOLE_HEAD}${lines}${END}`;
  return Buffer.concat([SOLE_HEAD_BYTES, lines, END_BYTES]);
}
