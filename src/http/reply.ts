// What a handler returns: a value that describes the answer. Writing it to the socket is respond.ts.

import type { Tracker } from '../domain/exchange.ts';
import type { McpReply } from '../protocol/endpoint-types.ts';
import type { Trail } from './request.ts';
import type { EventSource } from './sse/event-stream.ts';

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
