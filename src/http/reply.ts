// What a handler returns: a value that describes the answer. Writing it to the socket is respond.ts, and
// sse/event-stream.ts for a stream.

import type { Observable } from 'rxjs';
import type { Tracker } from '../domain/exchange.ts';
import type { McpReply } from '../protocol/endpoint-types.ts';
import type { Trail } from './request.ts';

/** Fields that every kind of reply may have. */
export interface ReplyFields {
  /** The instance that answered; becomes `X-Instance-ID`. */
  readonly instanceId?: string;
  /** For the audit log. */
  readonly trail?: Trail;
  /** Further headers as `[name, value, name, value]`. */
  readonly headers?: readonly string[];
}

export interface BytesReply extends ReplyFields {
  readonly kind: 'bytes';
  readonly status: number;
  /** JSON text, unless `type` says otherwise. */
  readonly bytes: Uint8Array | string;
  /** Media type. Default `application/json`. */
  readonly type?: string;
}

export interface EmptyReply extends ReplyFields {
  readonly kind: 'empty';
  readonly status: number;
}

/** One server-sent event. */
export interface StreamEvent {
  /** The `event:` line: lower case, no spaces. */
  readonly name: string;
  /** JSON text. Line breaks in it are kept by repeating `data:`. */
  readonly data: Uint8Array | string;
  /** The `id:` line, which a client sends as `Last-Event-ID` when it reconnects. */
  readonly id?: string;
  /** The instance that sent it. The first known one becomes `X-Instance-ID`, the last one is logged. */
  readonly instanceId?: string;
  /** True for events that must not be dropped when the client reads too slowly: the answer. */
  readonly essential?: boolean;
}

/** The client of a stream. */
export interface StreamReader {
  /** True while earlier bytes wait for the client: a source with backpressure emits nothing then. */
  readonly isBehind: boolean;
  /** Writes what is emitted meanwhile in one piece. */
  together(emit: () => void): void;
  /** Calls back when the client has read everything, until the returned function is called. */
  onCaughtUp(listener: () => void): () => void;
}

/** The source of events: a stream without backpressure, or one that is made for a reader and waits for it. */
export type EventSource = Observable<StreamEvent> | ((reader: StreamReader) => Observable<StreamEvent>);

export interface StreamReply {
  readonly kind: 'stream';
  readonly events$: EventSource;
  /** The instance that the request was sent to. */
  readonly tracker?: Tracker;
}

export interface ConversationReply {
  readonly kind: 'conversation';
  /** Writes the answer itself, now or later. An error that it throws, or rejects with, before that is answered. */
  readonly talk: (reply: McpReply) => void | Promise<void>;
}

export type Reply = BytesReply | EmptyReply | StreamReply | ConversationReply;

/** Answers with a value as JSON. */
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

/** Answers 204 without a body. */
export function noContent(fields: ReplyFields = {}): EmptyReply {
  return { kind: 'empty', status: 204, ...fields };
}

/**
 * Answers with server-sent events: subscribes once, unsubscribes when the client disconnects. An error before the first
 * event is an ordinary error answer; after it, it is the event `error`.
 */
export function eventStream(events$: EventSource, tracker?: Tracker): StreamReply {
  return { kind: 'stream', events$, ...(tracker && { tracker }) };
}

/** For the MCP endpoint, which writes its answer itself: one body, none, or an event stream. */
export function conversation(talk: ConversationReply['talk']): ConversationReply {
  return { kind: 'conversation', talk };
}
