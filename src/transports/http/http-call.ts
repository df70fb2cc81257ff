// One exchange over HTTP, from the POST to the answer: gives it an id and a progress token, sorts the messages of the answer,
// repeats it once when the backend forgot the session or misses a header, resumes an interrupted stream (http-polling.ts), and
// cancels it when its caller leaves.

import type { Subscriber, Subscription } from 'rxjs';
import type { CallMap } from '../../domain/call-map.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable, notWritable } from '../../domain/error-catalogue.ts';
import { asGatewayError, type GatewayError, perhapsDelivered } from '../../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonText, JsonValue } from '../../domain/json.ts';
import {
  type BackendMessage,
  type JsonRpcError,
  type NotificationMessage,
  type RequestMessage,
  RPC,
  requestText,
} from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { PostTrace } from '../../domain/trace.ts';
import { callerTokenOf, paramsForCaller, paramsWithToken } from '../handshake.ts';
import { type AnswerEnding, type AnswerSink, HttpAnswer, type RefusedEnding } from './http-answer.ts';
import type { HttpConnection } from './http-connection.ts';
import { answeredStatus, answerMissing, connectionClosed } from './http-failures.ts';
import { HttpPolling, isUnreachable } from './http-polling.ts';
import type { HttpSession } from './http-session.ts';
import { areTooLarge, TOO_LARGE, type ToolHeaders } from './tool-headers.ts';

/**
 * A call under way. `request` has the metadata of its era already. It is only repeated after its answer has ended, so that no
 * message of an earlier attempt can come.
 */
export class HttpCall implements AnswerSink {
  readonly #host: CallConversation;
  readonly #request: ExchangeRequest;
  readonly #subscriber: Subscriber<ExchangeEvent>;
  readonly #id: number;
  readonly #token: JsonValue | undefined;
  #answer: HttpAnswer | undefined;
  #polling: HttpPolling | undefined;
  /** The headers that were added because its tool asks for them. */
  #addedHeaders: ExchangeRequest['headers'];
  #listing: Subscription | undefined;
  #epoch = 0;
  /** The span of the POST under way. */
  #post: PostTrace | undefined;
  /** A message of the answer has come. */
  #hasMessage = false;
  #repeated = false;
  #settled = false;

  constructor(host: CallConversation, request: ExchangeRequest, subscriber: Subscriber<ExchangeEvent>) {
    this.#host = host;
    this.#request = request;
    this.#subscriber = subscriber;
    this.#id = host.connection.nextId();
    this.#token = callerTokenOf(request);
  }

  /** True once it was answered, failed, or lost its caller. */
  get isOver(): boolean {
    return this.#settled;
  }

  /** Sends the request. */
  start(): void {
    const { connection, session, calls, toolHeaders } = this.#host;
    if (connection.refuses(this.#request.method)) {
      this.#fail(backendUnavailable(ANSWERS_HOLD_TOO_MUCH, { delivered: 'no' }));
      return;
    }
    const added = toolHeaders.for(this.#request, session.peer);
    this.#addedHeaders = added;
    if (added !== undefined && areTooLarge(added)) {
      this.#erred(TOO_LARGE);
      return;
    }
    const params = paramsWithToken(this.#request, this.#id);
    let body: string;
    try {
      body = requestText(this.#id, this.#request.method, params);
    } catch (thrown) {
      this.#fail(notWritable(thrown));
      return;
    }
    calls.set(this.#id, this);
    this.#epoch = session.epoch;
    this.#answer = new HttpAnswer(this);
    this.#post = this.#request.trace?.post(connection.origin);
    const own = session.headers(added === undefined ? this.#request : { ...this.#request, headers: added });
    const headers = this.#post === undefined ? own : { ...own, ...this.#post.fields };
    if (this.#request.method === LISTEN) connection.subscribe(body, headers, this.#answer);
    else connection.post(body, headers, this.#answer);
  }

  /** The caller went away. */
  cancel(): void {
    if (this.#settled) return;
    this.#settle();
    void this.#withdraw();
  }

  /** The transport ends: fails the call with the reason. Resolves when the backend was notified, as far as it listens. */
  async abandon(reason: string): Promise<void> {
    this.#fail(connectionClosed(reason, this.#wasSent));
    await this.#withdraw();
  }

  /** A notification about this call, wherever it arrived. */
  notify({ method, params }: NotificationMessage): void {
    this.#hasMessage = true;
    const callerParams = method === PROGRESS ? paramsForCaller(params, this.#token) : params;
    this.#subscriber.next({ kind: 'notification', method, params: callerParams });
  }

  /** A message besides that for its caller. */
  tell(event: ExchangeEvent): void {
    this.#subscriber.next(event);
  }

  message(message: BackendMessage): void {
    if (this.#settled) return;
    switch (message.kind) {
      case 'result':
        if (message.id === this.#id) this.#resulted(message.result);
        else this.#host.unmatched();
        return;
      case 'error':
        // An answer without an id refuses something unreadable, and on this stream that can only be this call.
        // It is the answer whatever it says: after a success it would be unknown what the backend did before.
        if (message.id === this.#id || message.id === null) this.#erred(message.error);
        else this.#host.unmatched();
        return;
      case 'request':
        this.#host.asked(message, this);
        return;
      case 'notification':
        // It names a request by an id of this leg, which the caller could only take for another one.
        if (message.method === CANCELLED) return;
        // Log lines carry no id, but on the stream of a call they are about that call.
        if (message.method === LOG || this.#request.method === LISTEN) this.notify(message);
        else this.#host.notified(message, this);
    }
  }

  unmatched(): void {
    this.#host.unmatched();
  }

  finished(ending: AnswerEnding): void {
    if (this.#settled) return;
    if (ending.kind === 'refused') this.#refused(ending);
    else this.#pollOrFail(ending, ending.kind === 'broken' ? ending.failure : answerMissing(ending.lack));
  }

  /** A stream whose events have ids can be resumed; only the legacy era knows that. */
  #pollOrFail(ended: AnswerEnding, failure: GatewayError): void {
    const { lastEventId = '', retryMs } = this.#answer ?? {};
    const { connection, session } = this.#host;
    if (lastEventId === '' || session.peer.era !== 'legacy') {
      this.#fail(failure);
      return;
    }
    const sink = {
      message: (message: BackendMessage) => this.message(message),
      unmatched: () => this.unmatched(),
      interrupted: (waitMs: number | undefined) => this.tell({ kind: 'interrupted', retryMs: waitMs }),
      doubted: () => this.#host.doubted(),
      finished: (ending: AnswerEnding) => {
        if (ending.kind === 'refused' && session.isLost(ending, this.#id)) this.#forgotten(failure);
        else this.#fail(isUnreachable(ending) ? perhapsDelivered(ending.failure) : failure);
      },
    };
    this.#polling = new HttpPolling(connection, session, sink, { lastEventId, retryMs });
    this.#polling.start(ended);
  }

  #refused(refused: RefusedEnding): void {
    const { session, reopens } = this.#host;
    this.#postEnded(refused.status);
    if (!this.#repeated && session.isLost(refused, this.#id)) {
      this.#repeated = true;
      this.#answer = undefined;
      if (reopens) this.#repeat();
      else this.#forgotten(connectionClosed(FORGOTTEN, false));
      return;
    }
    const hasParamHeaders = (this.#addedHeaders ?? this.#request.headers) !== undefined;
    const refusal = callRefusalOf(refused, { id: this.#id, peer: session.peer, hasParamHeaders });
    if (refusal.kind === 'failure') this.#fail(refusal.failure);
    else if (refusal.kind === 'answer' || this.#repeated || this.#hasMessage) this.#erred(refusal.error);
    else this.#repeatWithHeaders(refusal.error);
  }

  /** The owner of the session learns of its end before it learns of the failure of this call. */
  #forgotten(error: GatewayError): void {
    if (this.#settled) return;
    this.#settle();
    if (!this.#host.reopens) this.#host.forgotten();
    this.#subscriber.error(error);
  }

  /** The server refused before any work, so the call may be repeated in a new session. */
  #repeat(): void {
    this.#host.session.reopen(this.#epoch).then(
      () => {
        if (!this.#settled) this.start();
      },
      (thrown: unknown) => this.#fail(sessionNotReopened(thrown)),
    );
  }

  #resulted(result: JsonText): void {
    const { session, toolHeaders } = this.#host;
    this.#answered({ kind: 'result', result: toolHeaders.checkTools(this.#request, session.peer, result) });
  }

  /** The server refused before any work: the call is repeated with the headers that its tool turns out to ask for. */
  #repeatWithHeaders(error: JsonRpcError): void {
    this.#repeated = true;
    const { session, toolHeaders } = this.#host;
    const changed$ = toolHeaders.haveChanged(this.#request, session.peer, this.#addedHeaders);
    this.#listing = changed$.subscribe((haveChanged) => {
      if (haveChanged) this.start();
      else this.#erred(error);
    });
  }

  #erred(error: JsonRpcError): void {
    this.#answered({ kind: 'error', error });
  }

  #answered(event: ExchangeEvent): void {
    this.#settle();
    this.#answer?.dismiss();
    this.#polling?.dismiss();
    this.#subscriber.next(event);
    this.#subscriber.complete();
  }

  #fail(error: GatewayError): void {
    if (this.#settled) return;
    this.#settle();
    this.#subscriber.error(error);
  }

  /** Closing the stream is the cancel of the modern era; other backends need a cancellation, and go on working without it. */
  async #withdraw(): Promise<void> {
    const { session } = this.#host;
    const sent = this.#wasSent;
    const reason = this.#request.canceller?.cancelReason; // there is one in this very turn
    this.#answer?.abort();
    this.#polling?.abort();
    if (sent && session.peer.era !== 'modern') await session.cancel(this.#id, reason);
  }

  get #wasSent(): boolean {
    return this.#answer?.sent === true;
  }

  #postEnded(status: number): void {
    this.#post?.ended(status);
    this.#post = undefined;
  }

  #settle(): void {
    this.#settled = true;
    this.#postEnded(this.#answer?.status ?? 0);
    this.#listing?.unsubscribe();
    this.#host.calls.delete(this.#id);
  }
}

export const PROGRESS = 'notifications/progress';
export const LOG = 'notifications/message';
export const CANCELLED = 'notifications/cancelled';
/** The reason of a conversation that ended because its backend does not know its session any more. */
export const FORGOTTEN = 'it forgot the session';
/** Its answer is a long-lived stream of its own messages. */
const LISTEN = 'subscriptions/listen';

/** The conversation a call belongs to. */
export interface CallConversation {
  readonly connection: HttpConnection;
  readonly session: HttpSession;
  readonly toolHeaders: ToolHeaders;
  /** Calls under way by request id, which is also their progress token. */
  readonly calls: CallMap<HttpCall>;
  /** Takes a notification that came on the stream of a call and need not be about the call. */
  notified(message: NotificationMessage, call: HttpCall): void;
  /** Takes a request of the backend that came on the stream of a call. */
  asked(message: RequestMessage, call: HttpCall): void;
  /** True when a session that the backend forgot is opened anew; else the conversation is over. */
  readonly reopens: boolean;
  /** Called when the backend forgot the session of a conversation that ends with it. */
  forgotten(): void;
  /** Called when the backend is in doubt, though the call goes on. */
  doubted(): void;
  /** Counts a message that is about nothing. */
  unmatched(): void;
}

// The meaning of a status that is no success for its call.

/** The meaning of a refused ending. */
type CallRefusal =
  /** The server says so, or the caller is to get it as the answer. */
  | { readonly kind: 'answer'; readonly error: JsonRpcError }
  /** The same, before anything was done: a header is missing or wrong. */
  | { readonly kind: 'header'; readonly error: JsonRpcError }
  /** The status may come from another program than the server. */
  | { readonly kind: 'failure'; readonly failure: GatewayError };

/** The call, as it was sent. */
interface SentCall {
  readonly id: number;
  readonly peer: Peer;
  /** True when arguments were repeated in headers. */
  readonly hasParamHeaders: boolean;
}

/** Reads a refusal of a call. */
export function callRefusalOf(refused: RefusedEnding, { id, peer, hasParamHeaders }: SentCall): CallRefusal {
  const { status, error } = refused;
  if (status === HEADERS_TOO_LARGE && hasParamHeaders) return { kind: 'answer', error: TOO_LARGE };
  const isAboutHeader = missesHeader(refused, peer);
  const isOwn = error?.id === id || (error?.id === null && isAboutHeader);
  if (error === undefined || !isOwn || PROXY_STATUS.has(status)) {
    return { kind: 'failure', failure: answeredStatus(status) };
  }
  return { kind: isAboutHeader ? 'header' : 'answer', error: error.error };
}

/** Its session was lost and there is no other: the call never ran, whatever the result of the handshake. */
export function sessionNotReopened(thrown: unknown): GatewayError {
  const error = asGatewayError(thrown);
  const reason = 'it forgot the session and no new one could be opened';
  return backendUnavailable(reason, { delivered: 'no', cause: error.cause ?? error, suspicious: true });
}

/**
 * The refusal comes before any work, and without an id when a proxy compares headers and never read the body. With any
 * other status it may come after the work. Source: MCP 2026-07-28
 * basic/transports/streamable-http#server-validation.
 */
function missesHeader({ status, error }: RefusedEnding, { era }: Peer): boolean {
  return status === 400 && era === 'modern' && error?.error.code === RPC.headerMismatch;
}

const HEADERS_TOO_LARGE = 431;
/** Statuses of proxies: even a JSON-RPC body does not prove that the backend got the request. */
const PROXY_STATUS: ReadonlySet<number> = new Set([502, 503, 504]);
