// JSON-RPC over the first transport of MCP for HTTP: one event stream for all messages of the backend, and a path for posts, which
// its first event names. It owns stream and posts, and ends every exchange. sse.ts does the handshake, correlator.ts finds the
// exchange of a message. Source: MCP 2024-11-05 basic/transports#http-with-sse.

import type { Observable, Unsubscribable } from 'rxjs';
import type { ClientProfile, ServerMessage } from '../../domain/client.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { cancellation, type ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { BackendMessage } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { CANCELLED } from '../../domain/mcp.ts';
import type { AnswerEnding, AnswerSink } from '../http/http-answer.ts';
import { HttpAnswer } from '../http/http-answer.ts';
import type { HttpConnection } from '../http/http-connection.ts';
import { answeredStatus, answerMissing, connectionClosed } from '../http/http-failures.ts';
import { ask } from '../http/http-handshake.ts';
import {
  type Channel,
  Correlator,
  type ExchangeObserver,
  type PendingExchange,
} from '../stdio/correlator.ts';
import type { Closed } from '../transport.ts';

/** Longest path that a backend may name. */
const LONGEST_TARGET = 2_048;

/** One event stream of a backend, which is opened at once, and its posts. */
export class SseChannel implements Channel, AnswerSink {
  readonly messages$: Observable<ServerMessage>;
  readonly closed$: Observable<Closed>;
  readonly #connection: HttpConnection;
  readonly #correlator: Correlator;
  readonly #stream = new HttpAnswer(this);
  readonly #located = Promise.withResolvers<void>();
  /** Resolves when the backend has named a path for posts; rejects with BACKEND_UNAVAILABLE when it names none. */
  readonly located: Promise<void> = this.#located.promise;
  #target: string | undefined;
  #unawaitedCount = 0;

  /** `profile`: the client; undefined for the conversation of the transport itself, which refuses requests of the backend. */
  constructor(connection: HttpConnection, profile: ClientProfile | undefined) {
    this.#connection = connection;
    this.#correlator = new Correlator({ profile, reply: (message) => void this.#sendUnawaited(message) });
    this.messages$ = this.#correlator.messages$;
    this.closed$ = this.#correlator.closed$;
    // `closed$` reports the same.
    this.located.catch(() => undefined);
    connection.listen({}, this.#stream);
  }

  get unmatchedMessages(): number {
    return this.#correlator.unmatchedMessages;
  }

  send(request: ExchangeRequest, observer: ExchangeObserver): Unsubscribable | undefined {
    const target = this.#target;
    const isRefused = this.#connection.refuses(request.method);
    if (this.#correlator.ended === undefined && (target === undefined || isRefused)) {
      const reason = isRefused ? ANSWERS_HOLD_TOO_MUCH : 'it has not named a path for messages';
      observer.error(connectionClosed(reason, false));
      return undefined;
    }
    const exchange = this.#correlator.open(request, observer);
    if (exchange === undefined) return undefined;
    const post = this.#postOf(exchange);
    exchange.delivered = 'unknown';
    this.#connection.post(exchange.text, request.trace?.fields ?? {}, post, target);
    return { unsubscribe: () => this.#cancel(exchange, post) };
  }

  /** Posts a notification, unless too many are under way. Never rejects, waits at most LIMITS.backgroundMs. */
  async notify(method: string, params: JsonObject): Promise<void> {
    await this.#sendUnawaited({ jsonrpc: '2.0', method, params });
  }

  /** Fails pending exchanges, by default with the reason, and closes the stream, which ends the session. Idempotent. */
  end(closed: Closed, errorFor?: (exchange: PendingExchange) => GatewayError): void {
    if (this.#correlator.ended !== undefined) return;
    this.#stream.abort();
    this.#located.reject(connectionClosed(closed.reason, false));
    this.#correlator.end(closed, errorFor);
  }

  async close(): Promise<void> {
    this.end({ reason: 'closed by the gateway', expected: true });
  }

  event(type: string, data: Buffer): void {
    if (type !== 'endpoint' || this.#target !== undefined) return;
    const target = data.length > LONGEST_TARGET ? undefined : this.#connection.pathOf(data.toString('utf8'));
    if (target === undefined) {
      this.#fail(backendUnavailable('it named a path for messages at another origin', { delivered: 'no' }));
    } else {
      this.#target = target;
      this.#located.resolve();
    }
  }

  message(message: BackendMessage): void {
    this.#correlator.receive(message);
  }

  unmatched(): void {
    this.#correlator.countUnmatched();
  }

  /** The stream has ended, and fails every exchange. */
  finished(ending: AnswerEnding): void {
    if (ending.kind === 'broken') this.#fail(ending.failure);
    else if (ending.kind === 'refused') this.#fail(answeredStatus(ending.status));
    else this.#fail(answerMissing(ending.streamed ? 'it ended its event stream' : `it ${ending.detail}`));
  }

  /** The answer comes on the stream; the answer to the post only matters when it is a failure. */
  #postOf(exchange: PendingExchange): HttpAnswer {
    const fail = (error: GatewayError): void => {
      if (this.#correlator.forget(exchange)) exchange.observer.error(error);
    };
    return new HttpAnswer({
      message: (message) => this.message(message),
      unmatched: () => undefined,
      finished: (ending) => {
        if (ending.kind === 'broken') fail(ending.failure);
        else if (ending.kind === 'refused') fail(answeredStatus(ending.status));
      },
    });
  }

  #cancel(exchange: PendingExchange, post: HttpAnswer): void {
    if (!this.#correlator.forget(exchange)) return;
    if (!post.sent) {
      post.abort();
      return;
    }
    const params = cancellation(exchange.id, exchange.canceller?.cancelReason);
    // Source: MCP 2025-11-25 basic/utilities/cancellation: "The initialize request MUST NOT be cancelled".
    if (exchange.method !== 'initialize') void this.notify(CANCELLED, params);
  }

  async #sendUnawaited(message: object): Promise<void> {
    const target = this.#target;
    if (this.#correlator.ended !== undefined || target === undefined) return;
    if (this.#unawaitedCount >= LIMITS.repliesUnderWay) return;
    this.#unawaitedCount += 1;
    const body = JSON.stringify(message);
    const send = (answer: HttpAnswer): void => this.#connection.post(body, {}, answer, target);
    await ask(send, undefined, AbortSignal.timeout(LIMITS.backgroundMs));
    this.#unawaitedCount -= 1;
  }

  #fail(failure: GatewayError): void {
    const { reason = failure.message, unreachable = false } = failure.facts;
    this.#located.reject(failure);
    this.end({ reason, expected: false }, ({ delivered }) =>
      backendUnavailable(reason, { delivered, suspicious: !unreachable, cause: failure }),
    );
  }
}
