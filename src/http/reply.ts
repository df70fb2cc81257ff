// What a handler gives back: a value that says how to answer. Writing it to the socket is respond.ts.

import type { Tracker } from '../domain/exchange.ts';
import type { McpReply } from '../protocol/endpoint-types.ts';
import type { Trail } from './request.ts';
import type { EventSource } from './sse/event-stream.ts';

/** Facts that every kind of reply may carry. */
export interface ReplyEvents {
  /** Who answered; becomes `X-Instance-ID`. */
  readonly instanceId?: string;
  /** For the audit log. */
  readonly trail?: Trail;
  /** Further headers as `[name, value, name, value]`. */
  readonly headers?: readonly string[];
}

export interface BytesReply extends ReplyEvents {
  readonly kind: 'bytes';
  readonly status: number;
  /** JSON text, unless `type` says otherwise. */
  readonly bytes: Uint8Array | string;
  /** Media type. Default `application/json`. */
  readonly type?: string;
}

export interface EmptyReply extends ReplyEvents {
  readonly kind: 'empty';
  readonly status: number;
}

export interface StreamReply {
  readonly kind: 'stream';
  readonly events$: EventSource;
  /** Where the request was sent whose events these are. */
  readonly tracker?: Tracker;
}

export interface ConversationReply {
  readonly kind: 'conversation';
  /** Answers by itself, now or later. What it throws, or rejects with, before it answered is answered for it. */
  readonly talk: (reply: McpReply) => void | Promise<void>;
}

export type Reply = BytesReply | EmptyReply | StreamReply | ConversationReply;

/** Answers with a value as JSON. */
export function json(status: number, value: unknown, facts: ReplyEvents = {}): BytesReply {
  return bytes(status, JSON.stringify(value), facts);
}

/** Answers with JSON text that is at hand already; it is not read. */
export function bytes(status: number, text: Uint8Array | string, facts: ReplyEvents = {}): BytesReply {
  return { kind: 'bytes', status, bytes: text, ...facts };
}

/** Answers 204 without a body. */
export function noContent(facts: ReplyEvents = {}): EmptyReply {
  return { kind: 'empty', status: 204, ...facts };
}

/**
 * Answers with server-sent events: subscribes once, unsubscribes when the client goes away. An error before the first
 * event is an ordinary error answer with its own status; after it, it is the event `error`. Source: decisions, "Surface A bodies".
 */
export function eventStream(events$: EventSource, tracker?: Tracker): StreamReply {
  return { kind: 'stream', events$, ...(tracker && { tracker }) };
}

/** Lets the handler answer by itself: one body, none, or an event stream that it keeps. For the MCP endpoint. */
export function conversation(talk: ConversationReply['talk']): ConversationReply {
  return { kind: 'conversation', talk };
}
