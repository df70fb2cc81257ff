// The replies that a handler returns: values that describe the answer. write-reply.ts chooses what writes
// them: respond.ts, or sse/event-stream.ts for streams. Every error answer has the body and the headers that are made here.
// Source: ADR 5.

import type { Observable } from 'rxjs';
import Type, { type Static } from 'typebox';
import { NO_PRINCIPAL, type Principal, SCOPES } from '../../domain/accounts/account.ts';
import type { Tracker } from '../../domain/calls/exchange.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { definedFields, JsonText } from '../../domain/json/json.ts';
import type { ForwardedAnswer, Forwarding } from '../../domain/nodes/forwarding.ts';
import type { ReplyWriter } from '../../protocol/endpoint-types.ts';
import { named, text } from '../records/schemas.ts';
import type { Trail } from '../request.ts';
import { seesMachine } from '../visible.ts';

export interface ReplyFields {
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
  /** Media type. Default `application/json`. */
  readonly type?: string;
}

/**
 * JSON text whose length is not known when it begins. `others` is read no faster than the client reads, and
 * returned when it leaves.
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
  type: 'text/event-stream',
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
  readonly essential?: boolean;
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
  readonly tracker?: Tracker;
}

/** The reply of a route of the MCP endpoint, which serves the request itself. */
export interface ServedReply {
  readonly kind: 'mcp';
  /** Writes the answer, now or later: one body, none, or an event stream. An error before that is answered. */
  readonly serve: (reply: ReplyWriter, relay: Relay) => void | Promise<void>;
}

/** Writes the answer of another node instead. */
export type Relay = (job: ForwardJob) => Promise<void>;

/** What relay.ts needs to forward a request to another node, which holds its session, and to pass on the answer. */
export interface ForwardJob {
  /** Id of that node, for the log. */
  readonly node: string;
  /** Sends the request; called once. */
  readonly forward: (answer: ForwardedAnswer) => Forwarding;
  /** See HttpRequest.onLost. */
  readonly onLost: (listener: (reason: Error) => void) => void;
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

const ValidationItem = Type.Object({
  loc: Type.Array(Type.Union([Type.String(), Type.Integer()])),
  msg: Type.String(),
  type: Type.String(),
});

export const ErrorBody = named('ErrorBody', {
  detail: Type.Union([text('No instance "everything-1" is registered.'), Type.Array(ValidationItem)]),
  error_code: text('SERVER_NOT_FOUND'),
  request_id: text('7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'),
  required_permissions: Type.Optional(Type.Array(Type.Enum([...SCOPES]))),
  connect_url: Type.Optional(Type.String({ format: 'uri' })),
  /** Only in a 403: the credential of the caller, as in `GET /auth/me`. */
  credential: Type.Optional(
    Type.Object({ kind: Type.Enum(['user', 'api-key']), id: text('key:0123456789abcdef') }),
  ),
  backend_error: Type.Optional(
    Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
  ),
  backend_status: Type.Optional(Type.Integer({ minimum: 300, maximum: 599, examples: [422] })),
  result: Type.Optional(Type.Unknown({ examples: [{ content: [{ type: 'text', text: 'Echo: hello' }] }] })),
  delivered: Type.Optional(Type.Literal('unknown')),
});
export type ErrorBody = Static<typeof ErrorBody>;

/**
 * Translates an error for one viewer: paths of this machine are only for principals that may see how instances
 * are run. A 503 says `delivered` when the call may have happened: the client must not repeat it blindly.
 */
export function errorBody(
  error: GatewayError,
  requestId: string,
  viewer: Principal = NO_PRINCIPAL,
): ErrorBody {
  const { items, requiredPermissions, connectUrl, backendError, backendStatus, result, plainMessage } =
    error.facts;
  const message = seesMachine(viewer) ? error.message : (plainMessage ?? error.message);
  return {
    detail: items === undefined ? message : items.map((item) => ({ ...item, loc: [...item.loc] })),
    error_code: error.code,
    request_id: requestId,
    ...(requiredPermissions === undefined ? {} : { required_permissions: [...requiredPermissions] }),
    ...definedFields({ connect_url: connectUrl }),
    ...(error.status === 403 ? credentialField(viewer) : {}),
    ...definedFields({ backend_error: backendError, backend_status: backendStatus, result }),
    ...(error.status === 503 && error.delivered === 'unknown' ? { delivered: 'unknown' as const } : {}),
  };
}

/** Several credentials may be in use on one machine: a refusal names the one that lacks the right. */
function credentialField({ kind, id }: Principal): Pick<ErrorBody, 'credential'> {
  return kind === 'anonymous' ? {} : { credential: { kind, id } };
}

export interface ErrorReplyFields {
  readonly viewer?: Principal | undefined;
  readonly fields?: object;
  /** `WWW-Authenticate` of this answer. Default: `Bearer` for a 401. */
  readonly challenge?: string | undefined;
}

export function errorReply(
  error: GatewayError,
  requestId: string,
  { viewer, fields, challenge }: ErrorReplyFields = {},
): BytesReply {
  const { instanceId } = error.facts;
  const body = { ...fields, ...errorBody(error, requestId, viewer) };
  const replyFields = { headers: errorHeaders(error, challenge), instanceId };
  const { result, ...others } = body;
  if (result instanceof JsonText) return withResult(error.status, others, result, replyFields);
  return json(error.status, body, replyFields);
}

/** `WWW-Authenticate` where other credentials would help. */
function errorHeaders(error: GatewayError, challenge?: string): string[] {
  const { allow, retryAfterSeconds } = error.facts;
  const headers: string[] = [];
  const authenticate = challenge ?? (error.status === 401 ? 'Bearer' : undefined);
  if (authenticate !== undefined) headers.push('WWW-Authenticate', authenticate);
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  return headers;
}
