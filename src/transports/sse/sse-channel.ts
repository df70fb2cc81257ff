// JSON-RPC over the first HTTP transport of MCP: one event stream for all messages of the backend, and a path for
// posts, which its first event names. Owns both and ends every exchange; sse.ts shakes hands. Source: MCP
// 2024-11-05 basic/transports#http-with-sse.

import type { Unsubscribable } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable, stoodStill } from '../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { errorWithoutSecrets } from '../../domain/instances/hidden-secrets.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import type { ClientProfile } from '../../domain/mcp/client.ts';
import type { BackendMessage } from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, INITIALIZED } from '../../domain/mcp/mcp.ts';
import { cutText } from '../../domain/text.ts';
import { Channel, type ExchangeObserver, type PendingExchange } from '../channel.ts';
import type { AnswerEnding } from '../http/answers/answer-ending.ts';
import { type AnswerSink, HttpAnswer } from '../http/answers/http-answer.ts';
import { answeredStatus, answerMissing, connectionClosed } from '../http/answers/http-failures.ts';
import { UnawaitedMessages } from '../http/background-requests.ts';
import type { HttpEndpoint } from '../http/http-endpoint.ts';
import { CookieJar } from '../http/sessions/cookie-jar.ts';
import type { Closed } from '../transport.ts';

const MAX_TARGET_LENGTH = 2_048;
/** UTF-16 units of an address in a reason. */
const MAX_SHOWN_LENGTH = 200;

/** One event stream of a backend, and its posts. */
export class SseChannel extends Channel implements AnswerSink {
  readonly endpoint: HttpEndpoint;
  readonly #stream = new HttpAnswer(this);
  readonly #located = Promise.withResolvers<void>();
  readonly #jar = new CookieJar();
  #target: string | undefined;
  readonly #unawaited: UnawaitedMessages;

  /** `profile`: the client; undefined for the conversation of the transport itself, which refuses requests of the backend. */
  constructor(endpoint: HttpEndpoint, profile: ClientProfile | undefined) {
    super(profile, endpoint.clock.now);
    this.endpoint = endpoint;
    this.#unawaited = new UnawaitedMessages(endpoint);
    this.#located.promise.catch(() => undefined); // `closed$` reports the same
  }

  /**
   * Opens the stream. Resolves when the backend has named a path for posts; rejects with BACKEND_UNAVAILABLE when
   * it names none.
   */
  override connect(): Promise<void> {
    this.endpoint.get({}, this.#stream, { isLasting: true, jar: this.#jar });
    return this.#located.promise;
  }

  send(request: ExchangeRequest, observer: ExchangeObserver): Unsubscribable | undefined {
    const target = this.#target;
    const unlocated = target === undefined ? 'it has not named a path for messages' : undefined;
    const refusal = this.endpoint.refuses(request.method, request.callerId)
      ? ANSWERS_HOLD_TOO_MUCH
      : unlocated;
    const exchange = this.begin(request, observer, refusal);
    if (exchange === undefined) return undefined;
    const post = this.#postOf(exchange);
    exchange.delivered = 'unknown';
    this.endpoint.post(exchange.text, request.trace?.fields ?? {}, post, { path: target, jar: this.#jar });
    return { unsubscribe: () => this.#cancel(exchange, post) };
  }

  /** Posts a notification, unless too many are under way. Never rejects, waits at most LIMITS.backgroundMs. */
  notify(method: string, params: JsonObject, ownerId = this.ownerId): Promise<void> | void {
    const isUrgent = method === CANCELLED || method === INITIALIZED;
    return this.#send({ jsonrpc: '2.0', method, params }, { isUrgent, ownerId });
  }

  /** Fails pending exchanges, by default with the reason, and closes the stream, which ends the session. Idempotent. */
  override end(closed: Closed, errorFor?: (exchange: PendingExchange) => GatewayError): Promise<void> | void {
    if (this.ended !== undefined) return;
    this.#stream.abort();
    this.#located.reject(connectionClosed(closed.reason, false));
    super.end(closed, errorFor);
  }

  protected reply(message: object): void {
    void this.#send(message, { isUrgent: true, ownerId: this.ownerId });
  }

  event(type: string, data: Buffer): void {
    if (type !== 'endpoint' || this.#target !== undefined) return;
    const target = data.length > MAX_TARGET_LENGTH ? undefined : this.endpoint.pathOf(data.toString('utf8'));
    if (target === undefined) {
      this.#fail(backendUnavailable(this.#refusalOf(data), { delivered: 'no' }));
    } else {
      this.#target = target;
      this.#located.resolve();
    }
  }

  /** The reason to refuse an endpoint, which shows it without its query: that may be a credential. */
  #refusalOf(data: Buffer): string {
    if (data.length > MAX_TARGET_LENGTH) return `its endpoint event has more than ${MAX_TARGET_LENGTH} bytes`;
    const { origin } = this.endpoint;
    const written = data.toString('utf8');
    if (!URL.canParse(written, origin)) return 'its endpoint event names no address';
    const named = new URL(written, origin);
    const shown = cutText(`${named.origin}${named.pathname}`, MAX_SHOWN_LENGTH);
    return `its endpoint event names ${shown}, which is another origin: messages are only posted to ${origin}`;
  }

  message(message: BackendMessage): void {
    const { secrets } = this.endpoint;
    const isError = message.kind === 'error';
    this.receive(isError ? { ...message, error: errorWithoutSecrets(message.error, secrets) } : message);
  }

  /** The stream has ended, and fails every exchange. */
  finished(ending: AnswerEnding): void {
    if (ending.kind === 'broken') this.#fail(ending.failure);
    else if (ending.kind === 'refused') this.#fail(answeredStatus(ending));
    else this.#fail(answerMissing(ending.isStreamed ? 'it ended its event stream' : `it ${ending.detail}`));
  }

  /** The answer comes on the stream; the answer to the post only matters when it is a failure. */
  #postOf(exchange: PendingExchange): HttpAnswer {
    const fail = (error: GatewayError): void => {
      if (this.forget(exchange)) exchange.observer.error(error);
    };
    return new HttpAnswer({
      held: (isHeld) => exchange.request.held?.(isHeld),
      mayBeSent: () => {
        if (exchange.request.mayBeSent?.() !== false) return true;
        fail(stoodStill());
        return false;
      },
      message: (message) => this.message(message),
      finished: (ending) => {
        if (ending.kind === 'broken') fail(ending.failure);
        else if (ending.kind === 'refused') fail(answeredStatus(ending));
      },
    });
  }

  /**
   * Cancels the post, and the exchange if it is pending. Also called after every other end of the exchange: the server need not
   * end its answer to the post.
   */
  #cancel(exchange: PendingExchange, post: HttpAnswer): void {
    if (post.isSent) post.abortLater();
    else post.abort();
    if (this.forget(exchange) && post.isSent) this.cancelOnBackend(exchange);
  }

  #send(
    message: object,
    options: { readonly isUrgent: boolean; readonly ownerId: string },
  ): Promise<void> | void {
    const path = this.#target;
    if (this.ended !== undefined || path === undefined) return;
    const body = JSON.stringify(message);
    const post = (answer: HttpAnswer): void => this.endpoint.post(body, {}, answer, { path, jar: this.#jar });
    return this.#unawaited.send(body, post, options);
  }

  #fail(failure: GatewayError): void {
    const { reason = failure.message, health } = failure.facts;
    this.#located.reject(failure);
    const ofCalls = health === 'unreachable' ? {} : ({ health: 'suspicious' } as const);
    this.end({ reason, isExpected: false }, ({ delivered }) =>
      backendUnavailable(reason, { delivered, ...ofCalls, cause: failure }),
    );
  }
}
