// The replies that a handler returns: values that describe the answer. write-reply.ts chooses their writer: respond.ts, or
// sse/event-stream.ts for streams.

import type { Observable } from 'rxjs';
import type { OpenReport } from '../../domain/calls/exchange.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { JsonText } from '../../domain/json/json.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import type { ForwardedAnswer, Forwarding } from '../../domain/nodes/forwarding.ts';
import type { ReplyWriter } from '../../protocol/endpoint-types.ts';
import type { Trail } from '../context.ts';

interface ReplyFields {
  /** The instance that answered, for `X-Instance-ID`. */
  readonly instanceId?: string | undefined;
  readonly trail?: Trail;
  /** Further headers as `[name, value, name, value]`. */
  readonly headers?: readonly string[];
}

export interface BytesReply extends ReplyFields {
  readonly kind: 'bytes';
  readonly status: number;
  /** JSON text, unless there is another `type`; absent for an answer without a body. */
  readonly bytes?: Uint8Array | string;
  /** Media type. Default: `application/json`. */
  readonly type?: string;
}

/**
 * JSON text whose length is not known when it begins. `others` is read no faster than the client reads, and ended when the client
 * leaves.
 */
export interface PiecesReply extends ReplyFields {
  readonly kind: 'pieces';
  readonly status: number;
  readonly first: string;
  /** The pieces after the first; the result of the generator is the last one. */
  readonly others: AsyncGenerator<string, string, void>;
}

/**
 * An event stream without events, in place of a 503 for a client that opens its stream of HTTP+SSE again:
 * `EventSource` tries again after the end of a stream, and gives up at any other status than 200.
 */
export const LATER_STREAM: BytesReply = {
  kind: 'bytes',
  status: 200,
  type: EVENT_STREAM_TYPE,
  bytes: 'retry: 1000\n\n',
};

export interface StreamEvent {
  /** The `event:` line: lower case, no spaces. */
  readonly name: string;
  /** JSON text. */
  readonly data: Uint8Array | string;
  /** The `id:` line, which a client sends as `Last-Event-ID` when it reconnects. */
  readonly id?: string;
  /** The instance that sent it. The first one is in `X-Instance-ID`, the last one is logged. */
  readonly instanceId?: string;
  /** True for an answer, which is not dropped when the client reads too slowly. */
  readonly isAnswer?: boolean;
}

/** The client of a stream, for sources with backpressure. */
export interface StreamReader {
  /** True while earlier bytes wait for the client: the source emits nothing then. */
  readonly isBehind: boolean;
  /** Joins the events that `emit` emits into one write. */
  together(emit: () => void): void;
  /** Calls back when the client has read everything, until the returned function is called. */
  onCaughtUp(listener: () => void): () => void;
}

/** The events: a stream without backpressure, or one that is made for its reader and waits for it. */
export type EventSource = Observable<StreamEvent> | ((reader: StreamReader) => Observable<StreamEvent>);

/**
 * Server-sent events: subscribed to once, and unsubscribed from when the client disconnects. An error before the
 * first event becomes an error answer, a later one the event `error`.
 */
interface StreamReply {
  readonly kind: 'stream';
  readonly events$: EventSource;
  /** Has the instance that the request was sent to. */
  readonly report?: OpenReport;
}

/** The reply of a route of the MCP endpoint, which serves the request itself. */
export interface ServedReply {
  readonly kind: 'mcp';
  /** Writes the answer, at once or later: one body, none, or an event stream. An error before that is answered. */
  readonly serve: (reply: ReplyWriter, relay: Relay) => void | Promise<void>;
}

/** Writes the answer of another node instead. */
export type Relay = (job: ForwardJob) => Promise<void>;

/** The fields that relay.ts needs to forward a request to another node, which holds its session, and to pass on the answer. */
export interface ForwardJob {
  /** Id of that node, for the log. */
  readonly node: string;
  /** Sends the request; called once. */
  readonly forward: (answer: ForwardedAnswer) => Forwarding;
  /**
   * The listener gets the reason when the answer may not, or cannot, be delivered any more, until the
   * returned function is called: see HttpRequest.onLost.
   */
  readonly onLost: (listener: (reason: Error) => void) => () => void;
  /** The failure of the forwarding as the error of the answer. */
  readonly failure: (error: GatewayError) => Error;
  /** Counts the request when the holder of its session refuses it, unless it is counted. */
  readonly countRefusal: () => void | Promise<void>;
}

export type Reply = BytesReply | PiecesReply | StreamReply | ServedReply;

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

/** Answers with an object whose field `result` is this JSON, which is not parsed. `others` has at least one field. */
export function withResult(
  status: number,
  others: object,
  result: JsonText,
  fields: ReplyFields = {},
): BytesReply {
  const tail = `,${JSON.stringify(others).slice(1)}`;
  return bytes(status, Buffer.concat([Buffer.from('{"result":'), result.bytes, Buffer.from(tail)]), fields);
}

export function noContent(fields: ReplyFields = {}): BytesReply {
  return { kind: 'bytes', status: 204, ...fields };
}
