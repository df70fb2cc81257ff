// One exchange: a request to a backend and all messages that come back for it. It is an Observable of
// ExchangeEvent; its errors are GatewayError (errors.ts).

import type { ErrorCode } from '../errors/errors.ts';
import type { TransportKind } from '../instances/transport-kinds.ts';
import { isJsonObject, type JsonFields, type JsonObject, type JsonText } from '../json/json.ts';
import type { ServerMessage } from '../mcp/client.ts';
import { type JsonRpcError, RPC } from '../mcp/jsonrpc.ts';
import { listOf } from '../mcp/mcp.ts';
import type { ToolRights } from '../rights/rights.ts';

/** What the gateway knows about the call of a request. No field of it is sent. */
interface CallContext {
  /**
   * Id of the calling principal, if any. It selects the receivers of messages that a shared backend does not
   * address to one client.
   */
  readonly caller?: string | undefined;
  /** Id of the view through which it came, for events. */
  readonly view?: string | undefined;
  /** The tools that the caller may call. Absent: all. */
  readonly tools?: ToolRights | undefined;
  /** The tool whose call with these arguments the user has confirmed: see toolKey. */
  readonly confirmed?: string | undefined;
  /**
   * Arrival time in ms of the gateway's monotonic clock, from which the deadline of a request that had to
   * wait counts. Default: now.
   */
  readonly arrivedAtMs?: number;
  /** Whether a view says that calling its tool twice does no harm. Default: the annotations of the tool. */
  readonly isRepeatable?: boolean | undefined;
  /** The limit of a view for the first answer, in ms. Default: that of the tool or the template. */
  readonly viewTimeoutMs?: number | undefined;
  /** Has the reason of a cancellation, if the client gives one. */
  readonly canceller?: Canceller;
  /** Is updated with the instance that works on the request. */
  readonly tracker?: Tracker;
  /** Id of the HTTP request, for events. */
  readonly requestId?: string | undefined;
}

/** A request for a backend. The transport gives it an id; `_meta` of the caller stays in `params`. */
export interface ExchangeRequest extends CallContext {
  readonly method: string;
  /** Fields that the gateway does not read are kept as text: ADR 43. */
  readonly params?: JsonFields;
  /**
   * True: the backend is asked for progress although the caller gave no token. Not sent itself. Default false.
   * Source: ADR 112.
   */
  readonly wantsProgress?: boolean;
  /** `mcp-param-*` headers in lower case; sent only to HTTP backends of the modern era. */
  readonly headers?: Readonly<Record<string, string>>;
  /** At an instance of another node: the longest time until the answer, in ms. A node that runs a call ends it before that. */
  readonly longestMs?: number;
  /** The span of the attempt. Only its fields are sent, if the era of the backend permits. */
  readonly trace?: AttemptTrace;
  /**
   * True: it is sent again in its conversation, after an error with `isRepaired`. A further refusal is its answer.
   * Not sent itself.
   */
  readonly isRepeat?: boolean;
}

export interface ExchangeOptions {
  /** Longest wait for the first answer, in ms; each notification restarts it. Default: the template's policy. */
  readonly timeoutMs?: number;
  /** Only this instance may answer: no balancing, no failover. */
  readonly instanceId?: string;
  /** True for a request that continues earlier work of that instance, which may be draining or unhealthy. Default false. */
  readonly isContinuation?: boolean;
}

/** Shows which instance works on a request before the answer. */
export interface Tracker {
  /** The instance that works on the request, the last one of several; none while it waits in a queue. */
  sentTo?: SentTo | undefined;
  /** The span of the request, if it is traced. */
  readonly trace?: RequestTrace | undefined;
  /** Number of instances that were tried in its latest call; a request with several rounds has several calls. */
  attempts?: number;
  /** Name of the called tool at its instance. */
  tool?: string | undefined;
  /** The template that the latest call is for, and the view through which it came. */
  template?: string | undefined;
  view?: string | undefined;
  /** Arguments of that tool, where the request named another one. */
  arguments?: JsonFields[string];
}

export interface SentTo {
  readonly template: string;
  readonly id: string;
}

/** Has a reason while the exchange of a cancelled request is being unsubscribed. */
export interface Canceller {
  readonly cancelReason: string | undefined;
}

/** The params of `notifications/cancelled`. */
export function cancellation(requestId: number, reason = 'no caller waits for the answer'): JsonObject {
  return { requestId, reason };
}

/**
 * The events of an exchange: zero or more messages, then one result or error, then it completes. `error` is an
 * answer of the backend, not a failure of the transport. A `request` comes only in a conversation that declared
 * the capabilities of a client.
 * `interrupted`: the backend closed its event stream before the answer and wants to be polled, which the transport does; clients
 * that can poll may get the event.
 */
export type ExchangeEvent =
  | ServerMessage
  /** `retryMs`: the wait that the backend asked for. */
  | { readonly kind: 'interrupted'; readonly retryMs: number | undefined }
  | FinalEvent;

export type FinalEvent =
  /** `cut`: why the list ends with this page although the backend named a next one, as a clause. */
  | { readonly kind: 'result'; readonly result: JsonText; readonly cut?: string }
  /** `refusal`: how its server refused the request over HTTP, if the error came with a status that is not a success. */
  | { readonly kind: 'error'; readonly error: JsonRpcError; readonly refusal?: HttpRefusal };

export interface HttpRefusal {
  readonly status: number;
  /** The wait that the server asked for, in ms. */
  readonly waitMs: number | undefined;
}

/** Name of the tool that a request calls, if any. */
export function toolOf({ method, params }: Pick<ExchangeRequest, 'method' | 'params'>): string | undefined {
  return method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
}

/** True for the event that ends an exchange. */
export function isFinal(event: ExchangeEvent): event is FinalEvent {
  return event.kind === 'result' || event.kind === 'error';
}

export interface Answer {
  readonly event: ExchangeEvent;
  readonly instanceId: string;
  readonly serverId: string;
  /** The answer is from a cache: no backend was asked, and the instance may be gone. */
  readonly isRemembered?: true;
  /** Age of a cached answer that is no longer fresh, in ms, when no backend could be asked. */
  readonly staleMs?: number;
  /** The confirmation of the request, if it needed one. */
  readonly confirmed?: string;
}

export type FinalAnswer = Omit<Answer, 'event'> & { readonly event: FinalEvent };

export function isFinalAnswer(answer: Answer): answer is Answer & FinalAnswer {
  return isFinal(answer.event);
}

/**
 * The report of one request of a client for the log, the audit log and the trace. The code that answers the client
 * opens and ends it; the dispatcher writes its fields as a Tracker.
 */
export interface CallReport extends Tracker {
  /** Called before the answer is written; only the first call counts. */
  ended(end: CallEnd): void;
}

/** The answer of the backend; or an error of the gateway, or of JSON-RPC; or the client disconnected. */
export type CallEnd =
  | FinalEvent
  | { readonly kind: 'failed'; readonly code: ErrorCode | number }
  | { readonly kind: 'cancelled' };

/**
 * The outcome for a client. `tool_error`: a result with `isError`; `error`: an error of JSON-RPC; `failed`: an
 * error of the gateway;
 * `cancelled`: nothing, because it disconnected.
 */
export type CallOutcome = 'result' | 'tool_error' | 'error' | 'failed' | 'cancelled';

export function outcomeOf(method: string, end: CallEnd): CallOutcome {
  if (end.kind === 'result')
    return method === 'tools/call' && isToolError(end.result) ? 'tool_error' : 'result';
  return isListRefusal(method, end) ? 'result' : end.kind;
}

/** True for the answer of a server that does not offer the list: it is empty. */
function isListRefusal(method: string, end: CallEnd): boolean {
  return end.kind === 'error' && end.error.code === RPC.methodNotFound && listOf(method) !== undefined;
}

/** True for the outcomes of requests that the backend answered. */
export function isAnswered(outcome: CallOutcome): boolean {
  return outcome === 'result' || outcome === 'tool_error' || outcome === 'error';
}

/** Results up to this size are parsed to confirm a match. */
const PARSED_BYTES = 65_536;
const KEY = Buffer.from('"isError"');
const IS_TRUE = /"isError"\s*:\s*true/;

/**
 * True for a result of a tool with `isError: true`. Most results are not parsed: in a JSON string the quotes would be escaped, so
 * a match is a key, though perhaps a nested one.
 */
function isToolError(result: JsonText): boolean {
  const { bytes } = result;
  // One search for all matches: a result may consist of this key.
  if (!bytes.includes(KEY) || !IS_TRUE.test(bytes.toString('latin1'))) return false;
  if (bytes.length > PARSED_BYTES) return true;
  try {
    const { value } = result;
    return isJsonObject(value) && value.isError === true;
  } catch {
    return false; // not JSON: transports do not verify every result
  }
}

// The interface of the spans of a request. src/tracing implements it with OpenTelemetry; a request that is not
// traced has no spans.

/** `traceparent` and perhaps `tracestate`, as headers of HTTP and as fields of `_meta`. Source: W3C Trace Context; SEP-414. */
export type TraceFields = Readonly<Record<string, string>>;

export interface RequestTrace {
  attempt(details: AttemptDetails): AttemptTrace;
}

export interface AttemptDetails {
  readonly method: string;
  /** Only the name of the tool or prompt is read. */
  readonly params: JsonFields | undefined;
  readonly template: string;
  readonly view: string | undefined;
  readonly instanceId: string;
  readonly transport: TransportKind;
  /** 1 for the first one. */
  readonly number: number;
}

export interface AttemptTrace {
  /** The fields for the backend, which continues the trace. */
  readonly fields: TraceFields;
  /** The revision that the backend speaks; `''` for none. */
  speaks(protocolVersion: string): void;
  /** Begins the child span of a POST; an attempt has several when the backend forgot its session. */
  post(origin: string): PostTrace;
  answered(answer: FinalEvent): void;
  /** `error`: undefined for an answer, and for a caller that disconnected. */
  ended(error: ErrorCode | undefined): void;
}

export interface PostTrace {
  readonly fields: TraceFields;
  /** `status`: of the answer; 0 for none. */
  ended(status: number): void;
}
