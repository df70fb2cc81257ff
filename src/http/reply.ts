// The replies that a handler returns: values that describe the answer. respond.ts writes them to the socket, sse/event-stream.ts if
// they are streams.

import type { Observable } from 'rxjs';
import type { Tracker } from '../domain/exchange.ts';
import type { McpReply } from '../protocol/endpoint-types.ts';
import type { Trail } from './request.ts';

export interface ReplyFields {
  /** The instance that answered, for `X-Instance-ID`. */
  readonly instanceId?: string;
  readonly trail?: Trail;
  /** Further headers as `[name, value, name, value]`. */
  readonly headers?: readonly string[];
}

export interface BytesReply extends ReplyFields {
  readonly kind: 'bytes';
  readonly status: number;
  /** JSON text, unless there is another `type`. */
  readonly bytes: Uint8Array | string;
  /** Media type. Default `application/json`. */
  readonly type?: string;
}

export interface EmptyReply extends ReplyFields {
  readonly kind: 'empty';
  readonly status: number;
}

export interface StreamEvent {
  /** The `event:` line: lower case, no spaces. */
  readonly name: string;
  /** JSON text. Line breaks in it are kept by repeating `data:`. */
  readonly data: Uint8Array | string;
  /** The `id:` line, which a client sends as `Last-Event-ID` when it reconnects. */
  readonly id?: string;
  /** The instance that sent it. The first one is in `X-Instance-ID`, the last one is logged. */
  readonly instanceId?: string;
  /** True for an answer, which is not dropped when the client reads too slowly. */
  readonly essential?: boolean;
}

/** The client of a stream, for sources with backpressure. */
export interface StreamReader {
  /** True while earlier bytes wait for the client: the source emits nothing then. */
  readonly isBehind: boolean;
  /** Joins what `emit` emits into one write. */
  together(emit: () => void): void;
  /** Calls back when the client has read everything, until the returned function is called. */
  onCaughtUp(listener: () => void): () => void;
}

/** The events: a stream without backpressure, or one that is made for its reader and waits for it. */
export type EventSource = Observable<StreamEvent> | ((reader: StreamReader) => Observable<StreamEvent>);

export interface StreamReply {
  readonly kind: 'stream';
  readonly events$: EventSource;
  /** Has the instance that the request was sent to. */
  readonly tracker?: Tracker;
}

export interface McpEndpointReply {
  readonly kind: 'mcp';
  /** Writes its answer itself, now or later: one body, none, or an event stream. An error before that is answered. */
  readonly serve: (reply: McpReply) => void | Promise<void>;
}

export type Reply = BytesReply | EmptyReply | StreamReply | McpEndpointReply;

export function json(status: number, value: unknown, fields: ReplyFields = {}): BytesReply {
  return bytes(status, JSON.stringify(value), fields);
}

/** Answers with a resource that was made or replaced, and its path for `Location` and the audit log. */
export function located(status: 200 | 201, path: string, value: unknown): BytesReply {
  return json(status, value, { headers: ['Location', path], trail: { subject: path } });
}

/** Answers with JSON text, which is not parsed. */
export function bytes(status: number, text: Uint8Array | string, fields: ReplyFields = {}): BytesReply {
  return { kind: 'bytes', status, bytes: text, ...fields };
}

export function noContent(fields: ReplyFields = {}): EmptyReply {
  return { kind: 'empty', status: 204, ...fields };
}

/**
 * Answers with server-sent events: subscribes once, unsubscribes when the client disconnects. An error before the first
 * event becomes an error answer, a later one the event `error`.
 */
export function eventStream(events$: EventSource, tracker?: Tracker): StreamReply {
  return { kind: 'stream', events$, ...(tracker && { tracker }) };
}
