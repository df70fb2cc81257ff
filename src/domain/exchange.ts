// One exchange: a request to a backend and everything that comes back for it.
// An exchange is an Observable of these events; its errors are GatewayError (errors.ts).

import type { ServerMessage } from './client.ts';
import type { JsonFields, JsonObject, JsonText } from './json.ts';
import type { JsonRpcError } from './jsonrpc.ts';
import type { AttemptTrace, RequestTrace } from './trace.ts';

/** A request on its way to a backend. Ids are given by the transport; `_meta` of the caller stays in `params`. */
export interface ExchangeRequest {
  readonly method: string;
  /** Fields that the gateway does not read are kept as the text they came in: ADR 43. */
  readonly params?: JsonFields;
  /** `mcp-param-*` headers in lower case, for HTTP backends of the modern era; others never see them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Id of the calling principal, if any. It is not sent: it selects the receivers of messages that a shared backend
   *  addresses to no client in particular. */
  readonly caller?: string;
  /**
   * The answer of a session in place of a request to that instance, known only once the session is bound to it; undefined
   * when the instance may be asked. It is not sent.
   */
  readonly refusedAt?: (instanceId: string) => FinalEvent | undefined;
  /**
   * When it came, in ms of the gateway's monotonic clock, where it had to wait before it could be sent: its time began then.
   * It is not sent. Default: it has not waited.
   */
  readonly cameAtMs?: number;
  /** The client, where it can say why it cancels. It is not sent. */
  readonly canceller?: Canceller;
  /** Learns where the request is sent. It is not sent itself. */
  readonly tracker?: Tracker;
  /** The span of its attempt, which the call begins. Not sent itself: its fields are, where the era of the backend permits. */
  readonly trace?: AttemptTrace;
  /** Id of the HTTP request that it came with, for events. It is not sent. */
  readonly requestId?: string | undefined;
}

/** What the report of a request shows of its call. */
export interface CallRecord {
  /** Instances that it was sent to, or could not be sent to because something failed to open before. */
  readonly attempts: number;
}

/** How a request is carried. */
export interface ExchangeOptions {
  /** Ms until the first answer; each notification starts it anew. Default: the template's policy. */
  readonly timeoutMs?: number;
  /** Only this instance may answer: no balancing, no failover. */
  readonly instanceId?: string;
  /** False: a tool that is in no list is called all the same, and the backend answers. Default true. */
  readonly looksUpTools?: boolean;
  /** True for a request that continues something at that instance, which may be draining or unhealthy. Default false. */
  readonly isContinuation?: boolean;
}

/** Knows the instance that works on a request, before it answers: the last one of several; none while it waits in line. */
export interface Tracker {
  sentTo?: SentTo | undefined;
  /** The span of the request, if it is traced. */
  readonly trace?: RequestTrace | undefined;
  /** Of the call that it became; of several, such as the rounds of one request, the latest one. */
  record?: CallRecord | undefined;
  /** Name of the called tool, as its instance knows it. */
  tool?: string | undefined;
}

/** An instance by its id, and its template. */
export interface SentTo {
  readonly template: string;
  readonly id: string;
}

/** Has a reason while a client cancels a request, which is while its exchange is unsubscribed. */
export interface Canceller {
  readonly cancelReason: string | undefined;
}

/** The params of the cancellation of a request whose answer is no longer awaited. */
export function cancellation(requestId: number, reason = 'no caller waits for the answer'): JsonObject {
  return { requestId, reason };
}

/**
 * What an exchange emits: zero or more messages on the way, then one result or one error, then it completes.
 * `error` is an answer of the backend (the request was delivered), not a failure of the transport. A `request` only
 * comes from a conversation that declared a client's capabilities. `interrupted`: the backend closed its event stream
 * before the answer and wants to be polled, which the transport does; a client that can poll may get the event.
 */
export type ExchangeEvent = ServerMessage | Interruption | FinalEvent;

/** The answer, which is the last event. */
export type FinalEvent =
  | { readonly kind: 'result'; readonly result: JsonText }
  | { readonly kind: 'error'; readonly error: JsonRpcError };

interface Interruption {
  readonly kind: 'interrupted';
  /** The wait that the backend asked for. */
  readonly retryMs: number | undefined;
}

/** Name of the tool that a request calls, if it does. */
export function toolOf({ method, params }: Pick<ExchangeRequest, 'method' | 'params'>): string | undefined {
  return method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
}

/** True for the event that ends an exchange. */
export function isFinal(event: ExchangeEvent): event is FinalEvent {
  return event.kind === 'result' || event.kind === 'error';
}

/** Emitted by the dispatcher: the event and the instance that said it. */
export interface Answer {
  readonly event: ExchangeEvent;
  readonly instanceId: string;
  readonly serverId: string;
  /** It comes from memory: no backend was asked, and the instance that sent it may be gone. */
  readonly isRemembered?: true;
}

/** An answer whose event is the last one. */
export type FinalAnswer = Omit<Answer, 'event'> & { readonly event: FinalEvent };

export function isFinalAnswer(answer: Answer): answer is Answer & FinalAnswer {
  return isFinal(answer.event);
}
