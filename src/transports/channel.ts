// The messages of one channel that carries many exchanges at the same time. Every client counts its ids and progress
// tokens from 0, so that they would collide: both are replaced by numbers of the channel, and restored in the messages
// that come back. The channel finds the exchange of each message; stdio-channel.ts and sse-channel.ts send and receive.
// Source: MCP basic/index#requests.

import { Observable, type Observer, ReplaySubject, Subject, type Unsubscribable } from 'rxjs';
import { cancellation, type ExchangeRequest } from '../domain/calls/exchange.ts';
import { type ExchangeEvent, isFinal } from '../domain/calls/exchange-event.ts';
import { backendUnavailable, HANDSHAKES_HOLD_TOO_MUCH } from '../domain/errors/backend-errors.ts';
import { type Delivered, GatewayError } from '../domain/errors/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json/json.ts';
import { resultEvent } from '../domain/lists/list-pages.ts';
import {
  type ClientProfile,
  QUESTION_REFUSALS,
  type ServerMessage,
  serverRequest,
} from '../domain/mcp/client.ts';
import {
  type AnswerMessage,
  type BackendMessage,
  idValue,
  type NotificationMessage,
  numberMeant,
  type RequestMessage,
} from '../domain/mcp/jsonrpc.ts';
import {
  CANCELLED,
  type Handshake,
  INITIALIZED,
  isCustomNotice,
  LISTEN,
  LOG,
  META,
  PROGRESS,
} from '../domain/mcp/mcp.ts';
import { CallMap } from '../domain/memory/call-map.ts';
import { keptBytes } from '../domain/memory/held-bytes.ts';
import { NO_CALLER } from '../domain/memory/user-shares.ts';
import { boundedHandshake, type HandshakeBounds } from './bounded-handshake.ts';
import {
  callerTokenOf,
  gatewayAnswerTo,
  paramsForCaller,
  RecentCallers,
  reportsProgress,
  textWithToken,
} from './caller-messages.ts';
import { type ClientInfo, withEraMetadata } from './era-metadata.ts';
import {
  type HandshakeAnswer,
  type HandshakeChannel,
  type HandshakeOptions,
  NO_HANDSHAKE,
  shakeHands,
} from './handshake.ts';
import type { OpenOptions } from './open-options.ts';
import { CLOSED_BY_GATEWAY, type Closed, type Conversation, type TransportDiagnostics } from './transport.ts';

export type ExchangeObserver = Pick<Observer<ExchangeEvent>, 'next' | 'error' | 'complete'>;

export interface PendingExchange {
  /** The id of the request, unique on the channel; also its progress token. */
  readonly id: number;
  readonly request: ExchangeRequest;
  /** The message to be sent, with the channel's id and progress token. */
  readonly text: string;
  readonly observer: ExchangeObserver;
  /** Whether the request can have reached the backend; the channel keeps it up to date. */
  delivered: Delivered;
}

export type ChannelOpening = HandshakeOptions &
  HandshakeBounds &
  Partial<Pick<OpenOptions, 'countHandshake'>>;

/** Exchanges messages with a backend; after the handshake it is a conversation. Each exchange ends exactly once. */
export abstract class Channel implements Conversation, HandshakeChannel {
  readonly #profile: Pick<ClientProfile, 'capabilities'> | undefined;
  readonly #pending = new CallMap<PendingExchange>();
  readonly #messages = new Subject<ServerMessage>();
  readonly #closed = new ReplaySubject<Closed>(1);
  readonly messages$: Observable<ServerMessage> = this.#messages;
  readonly closed$: Observable<Closed> = this.#closed;
  readonly #callers: RecentCallers;
  handshake: Handshake = NO_HANDSHAKE;
  /** The owner of the conversation; NO_CALLER for the transport itself. */
  ownerId = NO_CALLER;
  #client: ClientInfo = { name: '', version: '' };
  #lastId = 0;
  ended: Closed | undefined;

  /**
   * `profile`: the client that the backend may ask; undefined: requests of the backend are refused. `now`: a
   * monotonic clock in ms.
   */
  constructor(profile: Pick<ClientProfile, 'capabilities'> | undefined, now: () => number) {
    this.#profile = profile;
    this.#callers = new RecentCallers(now);
  }

  /** Sends a request. Unsubscribing the returned value cancels it. */
  abstract send(request: ExchangeRequest, observer: ExchangeObserver): Unsubscribable | undefined;

  /** Sends a notification, see Conversation.notify. A very long one is dropped. */
  abstract notify(method: string, params: JsonObject, ownerId?: string): Promise<void> | void;

  initialized(): Promise<void> | void {
    return this.notify(INITIALIZED, {});
  }

  protected abstract reply(message: object): void;

  get isUsable(): boolean {
    return this.ended === undefined;
  }

  diagnostics(): TransportDiagnostics {
    return { pid: null, stderr: [] };
  }

  /**
   * Shakes hands in time, over `pipe` if given. Throws GatewayError and `delivered: 'no'`, after the channel
   * was closed.
   */
  async open(options: ChannelOpening, pipe: HandshakeChannel = this): Promise<void> {
    this.#client = options.client;
    try {
      this.handshake = await boundedHandshake(options, async (signal) => {
        signal.addEventListener('abort', () => void this.close());
        if (this.connect !== undefined) await this.connect();
        return shakeHands(pipe, options);
      });
      this.#countHandshake(options);
    } catch (thrown) {
      await this.close();
      throw thrown;
    }
  }

  /** Counts the result of the handshake until the channel is closed. Throws BACKEND_UNAVAILABLE when there is no room. */
  #countHandshake({ countHandshake = () => true }: ChannelOpening): void {
    const bytes = keptBytes(this.handshake.greeting);
    if (bytes === 0) return;
    if (!countHandshake(bytes)) throw backendUnavailable(HANDSHAKES_HOLD_TOO_MUCH, { delivered: 'no' });
    this.#closed.subscribe(() => countHandshake(-bytes));
  }

  /** Connects the channel; called before the handshake. */
  connect?(): Promise<void>;

  /** Called after the observer of a request got its answer. */
  protected answered?(request: ExchangeRequest): void;

  protected get isIdle(): boolean {
    return this.#pending.size === 0;
  }

  request(request: ExchangeRequest): Promise<HandshakeAnswer> {
    return new Promise((resolve, reject) => {
      const next = (event: ExchangeEvent): void => {
        if (isFinal(event)) resolve(event);
      };
      this.send(request, { next, error: reject, complete: () => undefined });
    });
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) =>
      this.send(withEraMetadata(request, this.handshake, this.#client), subscriber),
    );
  }

  /**
   * Registers a request and gives it an id; undefined when it is refused: its observer has then got the error.
   * `refusal`: why the channel takes no request now. Throws VALIDATION_ERROR when the request cannot be serialized.
   */
  begin(request: ExchangeRequest, observer: ExchangeObserver, refusal?: string): PendingExchange | undefined {
    const reason = this.ended?.reason ?? refusal;
    if (reason !== undefined) {
      observer.error(backendUnavailable(reason, { delivered: 'no' }));
      return undefined;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    this.#callers.note(request.callerId);
    const text = textWithToken(request, id);
    const exchange: PendingExchange = { id, request, text, observer, delivered: 'no' };
    this.#pending.set(id, exchange);
    return exchange;
  }

  /** Removes an exchange without an event for its observer. Returns false when it has already ended. */
  forget(exchange: PendingExchange): boolean {
    return this.#pending.delete(exchange.id);
  }

  /**
   * Sends a cancellation to the backend. Source: MCP basic/utilities/cancellation: "The initialize request MUST NOT
   * be cancelled".
   */
  cancelOnBackend({ id, request: { method, canceller, callerId } }: PendingExchange): void {
    if (method !== 'initialize')
      void this.notify(CANCELLED, cancellation(id, canceller?.cancelReason), callerId);
  }

  /** Passes a message of the backend to its exchange, otherwise to `messages$`. */
  receive(message: BackendMessage): void {
    switch (message.kind) {
      case 'result':
      case 'error':
        this.#takeAnswer(message);
        return;
      case 'notification':
        this.#takeNotification(message);
        return;
      case 'request':
        this.#takeRequest(message);
    }
  }

  fail(id: number, reason: string): void {
    const exchange = this.#pending.get(id);
    if (exchange === undefined) return;
    this.#pending.delete(id);
    exchange.observer.error(backendUnavailable(reason, { delivered: 'unknown', health: 'suspicious' }));
  }

  /** Fails all pending exchanges for which `errorFor` returns an error, but none that observers start meanwhile. */
  failAll(errorFor: (exchange: PendingExchange) => GatewayError | undefined): void {
    for (const exchange of this.#pending.values()) {
      const error = errorFor(exchange);
      if (error !== undefined && this.#pending.delete(exchange.id)) exchange.observer.error(error);
    }
  }

  async close(): Promise<void> {
    await this.end(CLOSED_BY_GATEWAY);
  }

  /**
   * Handles the close of the channel: fails all exchanges, by default with the reason of the close, and completes the
   * streams. Idempotent.
   */
  end(closed: Closed, errorFor?: (exchange: PendingExchange) => GatewayError): Promise<void> | void {
    if (this.ended !== undefined) return;
    this.ended = closed;
    this.failAll(errorFor ?? (({ delivered }) => backendUnavailable(closed.reason, { delivered })));
    this.#messages.complete();
    this.#closed.next(closed);
    this.#closed.complete();
  }

  #takeAnswer(message: AnswerMessage): void {
    const exchange = this.#exchangeOf(message);
    if (exchange === undefined) return; // late, duplicate or unknown
    this.#pending.delete(exchange.id);
    const event =
      message.kind === 'result'
        ? resultEvent(exchange.request, message.result, this.handshake.era)
        : { kind: 'error' as const, error: message.error };
    if (event instanceof GatewayError) {
      exchange.observer.error(event);
      return;
    }
    exchange.observer.next(event);
    exchange.observer.complete();
    this.answered?.(exchange.request);
  }

  #takeNotification(message: NotificationMessage): void {
    const { method, params } = message;
    if (method === PROGRESS) {
      this.#takeProgress(method, params);
      return;
    }
    // A cancellation names a request by an id of this channel, which has no meaning elsewhere. It may end a subscription.
    if (method === CANCELLED) {
      const ended = this.#subscriptionOf(params.requestId);
      if (ended !== undefined) this.fail(ended.id, 'it ended the subscription');
      return;
    }
    // Log lines and unknown notifications belong to the only exchange, unless an earlier caller may have caused them.
    const isOfOnlyOne = (method === LOG || isCustomNotice(method)) && this.#callers.isSingle;
    const id = isJsonObject(params._meta) ? params._meta[META.subscriptionId] : undefined;
    const exchange = this.#subscriptionOf(id) ?? (isOfOnlyOne ? this.#onlyOne() : undefined);
    if (exchange === undefined) this.#messages.next(message);
    else exchange.observer.next({ kind: 'notification', method, params });
  }

  /**
   * Passes a request of the backend to the only pending exchange, otherwise to the client. A request that the backend
   * only echoes fails its own exchange.
   */
  #takeRequest(message: RequestMessage): void {
    const echoed = typeof message.id === 'number' ? this.#pending.get(message.id) : undefined;
    // `ping` is sent in both directions, so it may have the same id by chance. Source: MCP basic/index#requests.
    if (echoed?.request.method === message.method && message.method !== 'ping') {
      this.fail(echoed.id, 'it echoes its input');
      return;
    }
    const outcome = gatewayAnswerTo(message.method, this.#profile);
    // The reply is sent even if the exchange has ended meanwhile: the request may not belong to it.
    const id = idValue(message.id);
    const question = serverRequest(message, (answer) => this.reply({ jsonrpc: '2.0', id, ...answer }));
    const exchange = outcome === 'ask' ? this.#onlyOne() : undefined;
    if (exchange !== undefined) exchange.observer.next(question);
    else if (outcome !== 'ask') question.answer(outcome);
    else if (this.#messages.observed) this.#messages.next(question);
    else question.answer(QUESTION_REFUSALS.undeclared);
  }

  #exchangeOf({ kind, id }: AnswerMessage): PendingExchange | undefined {
    const number = numberMeant(id);
    if (number !== undefined) return this.#pending.get(number);
    // The server could not read the id of the request that it refuses.
    return kind === 'error' && id === null ? this.#onlyOne() : undefined;
  }

  /**
   * The only pending exchange, not counting subscriptions, which stay open; undefined if there is not exactly
   * one.
   */
  #onlyOne(): PendingExchange | undefined {
    let found: PendingExchange | undefined;
    for (const exchange of this.#pending.values()) {
      if (exchange.request.method === LISTEN) continue;
      if (found !== undefined) return undefined;
      found = exchange;
    }
    return found;
  }

  /**
   * The subscription that a notification names by the id of its request; undefined for any other id. Source:
   * MCP 2026-07-28 basic/patterns/subscriptions.
   */
  #subscriptionOf(id: JsonValue | undefined): PendingExchange | undefined {
    const exchange = this.#numbered(id);
    return exchange?.request.method === LISTEN ? exchange : undefined;
  }

  #numbered(id: JsonValue | undefined): PendingExchange | undefined {
    const number = numberMeant(id);
    return number === undefined ? undefined : this.#pending.get(number);
  }

  #takeProgress(method: string, params: JsonObject): void {
    const exchange = this.#numbered(params.progressToken);
    if (exchange === undefined || !reportsProgress(exchange.request)) return;
    exchange.observer.next({
      kind: 'notification',
      method,
      params: paramsForCaller(params, callerTokenOf(exchange.request)),
    });
  }
}
