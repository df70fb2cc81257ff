// One exchange over HTTP, from the POST to the answer: sorts the messages of the answer, and cancels it when its
// caller unsubscribes. When the backend forgot the session or misses a header, it removes the cause and fails with
// `isRepaired`; its caller decides about a repeat. An event stream that ended before the answer is resumed
// (stream-polling.ts). The caller sets the deadline.

import type { Subscriber } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import type { PostTrace } from '../../domain/calls/request-trace.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable, stoodStill } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, GatewayError } from '../../domain/errors/errors.ts';
import { errorWithoutSecrets } from '../../domain/instances/hidden-secrets.ts';
import type { JsonText, JsonValue } from '../../domain/json/json.ts';
import { resultEvent } from '../../domain/lists/list-pages.ts';
import {
  type BackendMessage,
  type JsonRpcError,
  type NotificationMessage,
  numberMeant,
  type RequestMessage,
  RPC,
} from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, type Handshake, isCustomNotice, LISTEN, LOG, PROGRESS } from '../../domain/mcp/mcp.ts';
import type { CallMap } from '../../domain/memory/call-map.ts';
import { callerTokenOf, paramsForCaller, reportsProgress, textWithToken } from '../caller-messages.ts';
import type { OpenOptions } from '../open-options.ts';
import { areTooLarge, HEADERS_TOO_LARGE, type ToolHeaders } from '../tool-headers.ts';
import type { Closed } from '../transport.ts';
import type { AnswerEnding, RefusedEnding } from './answers/answer-ending.ts';
import { type AnswerSink, HttpAnswer } from './answers/http-answer.ts';
import {
  answeredStatus,
  answerMissing,
  connectionClosed,
  refusedBeforeWork,
  sessionForgotten,
  sessionNotReplaced,
} from './answers/http-failures.ts';
import type { HttpEndpoint } from './http-endpoint.ts';
import type { HttpSession } from './sessions/http-session.ts';
import type { KeptHandshakes } from './sessions/kept-handshakes.ts';
import { StreamPolling } from './stream-polling.ts';

/**
 * An exchange that fails with `isRepaired` does so after its answer has ended, so that no message of it can arrive
 * during the repeat.
 */
export class HttpExchange implements AnswerSink {
  readonly #conversation: HttpExchangeHost;
  readonly #request: ExchangeRequest;
  readonly #subscriber: Subscriber<ExchangeEvent>;
  readonly #id: number;
  readonly #token: JsonValue | undefined;
  #answer: HttpAnswer | undefined;
  #polling: StreamPolling | undefined;
  #addedHeaders: ExchangeRequest['headers'];
  /** The session of the latest POST. */
  #session: HttpSession;
  #post: PostTrace | undefined;
  isOver = false;

  constructor(
    conversation: HttpExchangeHost,
    request: ExchangeRequest,
    subscriber: Subscriber<ExchangeEvent>,
  ) {
    this.#conversation = conversation;
    this.#session = conversation.session;
    this.#request = request;
    this.#subscriber = subscriber;
    this.#id = conversation.backend.endpoint.nextId();
    this.#token = callerTokenOf(request);
  }

  get callerId(): string | undefined {
    return this.#request.callerId;
  }

  /** Sends the request. Throws VALIDATION_ERROR when it cannot be serialized. */
  start(): void {
    if (this.isOver) return;
    const { backend, session, exchanges, ending } = this.#conversation;
    if (ending !== undefined) {
      this.#fail(connectionClosed(ending.reason, false));
      return;
    }
    const { endpoint, toolHeaders } = backend;
    if (endpoint.refuses(this.#request.method, this.callerId)) {
      this.#fail(backendUnavailable(ANSWERS_HOLD_TOO_MUCH, { delivered: 'no' }));
      return;
    }
    const added = toolHeaders.for(this.#request, session.handshake);
    this.#addedHeaders = added;
    const mirrored = added ?? this.#request.headers;
    if (mirrored !== undefined && session.handshake.era === 'modern' && areTooLarge(mirrored)) {
      this.#complete({ kind: 'error', error: HEADERS_TOO_LARGE });
      return;
    }
    const body = textWithToken(this.#request, this.#id);
    exchanges.set(this.#id, this);
    this.#session = session;
    this.#answer = new HttpAnswer(this);
    this.#post = this.#request.trace?.post(endpoint.origin);
    const own = session.headers(added === undefined ? this.#request : { ...this.#request, headers: added });
    const headers = this.#post === undefined ? own : { ...own, ...this.#post.fields };
    endpoint.post(body, headers, this.#answer, {
      isLasting: this.#request.method === LISTEN,
      jar: session.jar,
    });
  }

  cancel(): void {
    if (this.isOver) return;
    this.#settle();
    void this.#cancelOnBackend();
  }

  /**
   * The conversation ends: fails the call. Resolves when the backend was notified, or could not be within
   * LIMITS.backgroundMs.
   */
  async abandon(reason: string): Promise<void> {
    this.#fail(connectionClosed(reason, this.#wasSent));
    await this.#cancelOnBackend();
  }

  /** Passes on a notification about this call, on whichever stream it arrived. */
  notify({ method, params }: NotificationMessage): void {
    if (method === PROGRESS && !reportsProgress(this.#request)) return;
    const callerParams = method === PROGRESS ? paramsForCaller(params, this.#token) : params;
    this.#subscriber.next({ kind: 'notification', method, params: callerParams });
  }

  /** A stream of its answer is always read. */
  mayBeSent(): boolean {
    if (this.#polling !== undefined || this.#request.mayBeSent?.() !== false) return true;
    this.#fail(stoodStill());
    return false;
  }

  held(isHeld: boolean): void {
    this.#request.held?.(isHeld);
  }

  emit(event: ExchangeEvent): void {
    this.#subscriber.next(event);
  }

  message(message: BackendMessage): void {
    if (this.isOver) return;
    this.#polling?.noteMessage();
    switch (message.kind) {
      case 'result':
        if (numberMeant(message.id) === this.#id) {
          this.#takeResult(message.result);
        }
        return;
      case 'error':
        // An error without an id refuses something unreadable, which on this stream can only be this call.
        if (message.id === null || numberMeant(message.id) === this.#id)
          this.#complete({ kind: 'error', error: message.error });
        return;
      case 'request':
        this.#conversation.receiveRequest(message, this);
        return;
      case 'notification':
        // A cancellation names a request by the gateway's id, which the caller would take for another request.
        if (message.method === CANCELLED) return;
        // Log lines and custom notifications carry no id; on the stream of a call they belong to that call.
        if (message.method === LOG || isCustomNotice(message.method) || this.#request.method === LISTEN)
          this.notify(message);
        else this.#conversation.receiveNotification(message, this);
    }
  }

  #takeResult(received: JsonText): void {
    const { backend, session } = this.#conversation;
    const event = resultEvent(this.#request, received, session.handshake.era);
    if (event instanceof GatewayError) {
      this.#fail(event);
      this.#answer?.abortLater(); // its stream may stay open
      return;
    }
    const result = backend.toolHeaders.checkTools(this.#request, session.handshake, event.result);
    this.#complete(result === event.result ? event : { ...event, result });
  }

  finished(ending: AnswerEnding): void {
    if (this.isOver) return;
    if (this.#polling !== undefined) this.#polling.ended(this.#answer, ending);
    else if (ending.kind === 'refused') this.#takeRefusal(ending);
    else this.#pollOrFail(ending, ending.kind === 'broken' ? ending.failure : answerMissing(ending.detail));
  }

  /** A stream whose events have ids can be resumed, in the legacy era only. */
  #pollOrFail(ended: AnswerEnding, failure: GatewayError): void {
    const answer = this.#answer;
    this.#endPostSpan(answer?.status ?? 0);
    const lastEventId = answer?.lastEventId;
    const isLegacy = this.#conversation.session.handshake.era === 'legacy';
    if (lastEventId === undefined || !isLegacy) {
      this.#fail(failure);
      return;
    }
    const call = {
      clock: this.#conversation.backend.options.clock,
      poll: (after: string) => this.#poll(after, failure),
      interrupted: (retryMs: number | undefined) => this.emit({ kind: 'interrupted', retryMs }),
      fail: (error: GatewayError) => this.#fail(error),
      streamUnknown: () =>
        this.#conversation.session.hasSession ? this.#failForLostSession(failure) : this.#fail(failure),
    };
    this.#polling = new StreamPolling(call, { lastEventId, retryMs: answer?.retryMs }, failure);
    this.#polling.start(ended);
  }

  #poll(lastEventId: string, failure: GatewayError): void {
    const { backend, session } = this.#conversation;
    if (session !== this.#session) {
      this.#fail(failure); // a server may open a new stream for an event of another session
      return;
    }
    this.#answer = new HttpAnswer(this);
    backend.endpoint.get({ ...session.headers({ method: '' }), 'last-event-id': lastEventId }, this.#answer, {
      jar: session.jar,
    });
  }

  #takeRefusal(refused: RefusedEnding): void {
    const { session } = this.#conversation;
    this.#endPostSpan(refused.status);
    if (this.#request.isResent) this.#takeAnswer(refused);
    else if (session.isLost(refused, this.#id)) this.#failWhenRepaired(this.#replaceSession());
    else if (session.mayBeLost(refused, this.#id))
      this.#failWhenRepaired(this.#checkSession(refused, this.#session));
    else this.#takeAnswer(refused);
  }

  /** The server refused the request before any work. `repair` resolves with false when it has ended the call. */
  #failWhenRepaired(repair: Promise<boolean>): void {
    void repair.then((isRepaired) => isRepaired && this.#fail(refusedBeforeWork()));
  }

  async #replaceSession(): Promise<boolean> {
    const { session } = this.#conversation;
    this.#answer = undefined;
    const replaced = this.#conversation.replaceSession(this.#session);
    if (replaced === undefined) {
      this.#failForLostSession(sessionForgotten());
      return false;
    }
    try {
      await replaced;
      return true;
    } catch (thrown) {
      this.#failForLostSession(session.hasSession ? sessionNotReplaced(thrown) : asGatewayError(thrown));
      return false;
    }
  }

  /**
   * The status may be about the session or about the call. If the session is refused a ping, too, and another one
   * can be opened, the session is lost, and the call was not carried out. Source: ADR 108.
   */
  async #checkSession(refused: RefusedEnding, session: HttpSession): Promise<boolean> {
    const isAlive = this.#request.method !== 'ping' && !(await session.isRefused());
    if (this.isOver) return false; // perhaps with its conversation, which opens no session any more
    if (isAlive) {
      this.#takeAnswer(refused);
      return false;
    }
    const replaced = this.#conversation.replaceSession(session);
    try {
      await (replaced ?? this.#conversation.tryAnother());
    } catch {
      // The shared conversation ends, if the backend speaks another era now.
      if (replaced !== undefined) this.#conversation.sessionLost();
      this.#takeAnswer(refused); // the status is not about the session
      return false;
    }
    if (replaced === undefined) this.#failForLostSession(sessionForgotten());
    return replaced !== undefined;
  }

  #takeAnswer(refused: RefusedEnding): void {
    if (this.isOver) return;
    const { session } = this.#conversation;
    const answer = answerOrFailure(refused, this.#id, session.handshake);
    const { status, waitMs } = refused;
    if (answer instanceof GatewayError) this.#fail(answer);
    else if (this.#request.isResent || !missesHeader(refused, session.handshake))
      this.#complete({ kind: 'error', error: answer, refusal: { status, waitMs } });
    else this.#failWhenRepaired(this.#renewHeaders(answer));
  }

  /** Reports the end of the session before the failure of this call. */
  #failForLostSession(error: GatewayError): void {
    if (this.isOver) return;
    this.#settle();
    this.#conversation.sessionLost();
    this.#subscriber.error(error);
  }

  /** True when the current list of tools asks for other headers. */
  async #renewHeaders(error: JsonRpcError): Promise<boolean> {
    const { backend, session } = this.#conversation;
    const haveChanged = await backend.toolHeaders.haveChanged(
      this.#request,
      session.handshake,
      this.#addedHeaders,
    );
    if (!haveChanged && !this.isOver) this.#complete({ kind: 'error', error });
    return haveChanged;
  }

  #complete(event: ExchangeEvent): void {
    this.#settle();
    this.#answer?.abortLater();
    const { secrets } = this.#conversation.backend.endpoint;
    const isError = event.kind === 'error';
    this.#subscriber.next(isError ? { ...event, error: errorWithoutSecrets(event.error, secrets) } : event);
    this.#subscriber.complete();
  }

  #fail(error: GatewayError): void {
    if (this.isOver) return;
    this.#settle();
    this.#subscriber.error(error);
  }

  /** Cancels the request at the backend: in the modern era by closing the stream, else by a notification. */
  async #cancelOnBackend(): Promise<void> {
    const { session } = this.#conversation;
    const wasSent = this.#wasSent;
    const reason = this.#request.canceller?.cancelReason; // only set while the exchange is being unsubscribed
    this.#answer?.abort();
    if (wasSent && session.handshake.era !== 'modern')
      await session.cancel(this.#id, this.#request.callerId ?? this.#conversation.ownerId, reason);
  }

  get #wasSent(): boolean {
    return this.#polling !== undefined || this.#answer?.isSent === true;
  }

  #endPostSpan(status: number): void {
    this.#post?.ended(status);
    this.#post = undefined;
  }

  #settle(): void {
    this.isOver = true;
    this.#endPostSpan(this.#answer?.status ?? 0);
    this.#polling?.end();
    this.#conversation.exchanges.delete(this.#id);
  }
}

export interface HttpBackend {
  readonly endpoint: HttpEndpoint;
  readonly options: Pick<
    OpenOptions,
    'client' | 'clock' | 'handshakeTimeoutMs' | 'scheduler' | 'era' | 'history'
  >;
  readonly toolHeaders: ToolHeaders;
  /** What its conversations keep of their handshakes. */
  readonly handshakes: KeptHandshakes;
  /** Deletes a session on the backend; waits while many others are being deleted. Never rejects. */
  readonly deleteSession: (session: HttpSession) => Promise<void>;
}

export interface HttpExchangeHost {
  readonly backend: HttpBackend;
  readonly session: HttpSession;
  readonly ownerId: string;
  readonly exchanges: CallMap<HttpExchange>;
  /** The end of the conversation, once there is one. */
  readonly ending: Closed | undefined;
  /** Takes a notification that came on the stream of a call and may belong to no call. */
  receiveNotification(message: NotificationMessage, exchange: HttpExchange): void;
  receiveRequest(message: RequestMessage, exchange: HttpExchange): void;
  /**
   * Replaces this lost session, unless that was done. Throws like openSession, also when the backend has changed its era.
   * Undefined when the conversation ends with its session.
   */
  replaceSession(lost: HttpSession): Promise<void> | undefined;
  /** Opens a session like that of the conversation, and deletes it. Throws like openSession. */
  tryAnother(): Promise<void>;
  /** Ends the conversation, unless a session of the same era can replace the lost one. */
  sessionLost(): void;
}

/** The answer that a refusal is, or the failure of the call: the status may come from a proxy instead of the server. */
function answerOrFailure(
  refused: RefusedEnding,
  id: number,
  handshake: Handshake,
): JsonRpcError | GatewayError {
  const { status, error } = refused;
  const isOwn = numberMeant(error?.id) === id || (error?.id === null && missesHeader(refused, handshake));
  return error === undefined || !isOwn || PROXY_STATUS.has(status) ? answeredStatus(refused) : error.error;
}

/**
 * True for a refusal before any work; without an id from a proxy that read only headers. Source:
 * streamable-http#server-validation.
 */
function missesHeader({ status, error }: RefusedEnding, { era }: Handshake): boolean {
  return status === 400 && era === 'modern' && error?.error.code === RPC.headerMismatch;
}

/** Statuses of proxies: even a JSON-RPC body does not prove that the backend got the request. */
const PROXY_STATUS: ReadonlySet<number> = new Set([502, 503, 504]);
