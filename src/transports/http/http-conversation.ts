// One conversation over HTTP: calls and a listening stream in one session.

import { AsyncSubject, Observable, Subject } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { type ClientProfile, type ServerMessage, serverRequest } from '../../domain/mcp/client.ts';
import {
  type BackendMessage,
  type NotificationMessage,
  numberMeant,
  type RequestMessage,
} from '../../domain/mcp/jsonrpc.ts';
import { CANCELLED, type Handshake, LOG, PROGRESS } from '../../domain/mcp/mcp.ts';
import { CallMap } from '../../domain/memory/call-map.ts';
import { NO_CALLER } from '../../domain/memory/user-shares.ts';
import { gatewayAnswerTo, RecentCallers } from '../caller-messages.ts';
import { withEraMetadata } from '../era-metadata.ts';
import { CLOSED_BY_GATEWAY, type Closed, type Conversation } from '../transport.ts';
import { SESSION_LOST } from './answers/http-failures.ts';
import { BackendEventStream, type EventStreamSink } from './backend-event-stream.ts';
import { type HttpBackend, HttpExchange, type HttpExchangeHost } from './http-exchange.ts';
import { type HttpSession, openSession } from './sessions/http-session.ts';
import { SessionReplacement } from './sessions/session-replacement.ts';

/**
 * A conversation of the transport, or of one client. The conversation of the transport itself declares no capabilities
 * and replaces a lost session; that of a client ends with its session. Thousands of the latter are idle, so everything
 * that only calls and messages need is created on first use.
 */
export class HttpConversation implements Conversation, HttpExchangeHost, EventStreamSink {
  readonly handshake: Handshake;
  session: HttpSession;
  /** Owner of the conversation; of the transport's own one, the gateway. */
  readonly ownerId: string;
  readonly backend: HttpBackend;
  readonly closed$ = new AsyncSubject<Closed>();
  ending: Closed | undefined;
  readonly #profile: ClientProfile | undefined;
  /** The recent callers; set for the conversation of the transport itself, which several callers share. */
  readonly #callers: RecentCallers | undefined;
  #exchanges: CallMap<HttpExchange> | undefined;
  #eventStream: BackendEventStream | undefined;
  #messages: Subject<ServerMessage> | undefined;
  #resumed: Subject<void> | undefined;
  #closing: Promise<void> | undefined;
  /** It is set for the conversation of the transport itself. */
  readonly #replacement: SessionReplacement | undefined;

  /** `profile`: the client; undefined for the conversation of the transport itself. */
  constructor(
    backend: HttpBackend,
    session: HttpSession,
    profile: ClientProfile | undefined,
    ownerId = NO_CALLER,
  ) {
    this.ownerId = ownerId;
    this.handshake = session.handshake;
    this.session = session;
    this.backend = backend;
    this.#profile = profile;
    if (profile !== undefined) return;
    this.#replacement = new SessionReplacement(this);
    this.#callers = new RecentCallers(backend.options.clock.now);
    this.#listen();
  }

  get exchanges(): CallMap<HttpExchange> {
    this.#exchanges ??= new CallMap();
    return this.#exchanges;
  }

  get messages$(): Observable<ServerMessage> {
    return new Observable((subscriber) => {
      if (this.ending !== undefined) return subscriber.complete();
      this.#messages ??= new Subject();
      const subscription = this.#messages.subscribe(subscriber);
      this.#listen();
      return () => {
        subscription.unsubscribe();
        if (!this.#messages?.observed && this.#profile !== undefined) this.#eventStream?.stop();
      };
    });
  }

  get resumed$(): Observable<void> {
    this.#resumed ??= new Subject();
    return this.#resumed;
  }

  get untilListening(): Promise<void> | undefined {
    return this.#eventStream?.untilListening;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      const exchange = new HttpExchange(
        this,
        withEraMetadata(request, this.handshake, this.backend.options.client),
        subscriber,
      );
      this.#callers?.note(request.callerId);
      // The call may cause messages on the listening stream, so the stream must be open first.
      const listening = this.#profile && this.untilListening;
      if (listening === undefined) exchange.start();
      else listening.then(() => exchange.start()).catch((thrown) => subscriber.error(thrown));
      return () => exchange.cancel();
    });
  }

  notify(method: string, params: JsonObject, ownerId = this.ownerId): void {
    if (this.ending === undefined) this.session.notify(method, params, ownerId);
  }

  close(): Promise<void> {
    return this.end(CLOSED_BY_GATEWAY);
  }

  /** The backend is notified only when the end is expected, or it has changed its era. `last` runs before `closed$` emits. */
  end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#end(closed, last);
    return this.#closing;
  }

  replaceSession(lost: HttpSession): Promise<void> | undefined {
    return this.#replacement?.replace(lost);
  }

  async tryAnother(): Promise<void> {
    const { endpoint, options } = this.backend;
    const { signal } = new AbortController(); // it is bounded by the time for a handshake
    const [profile, known] = [this.#profile, this.handshake.era];
    const session = await openSession(endpoint, { ...options, signal, profile, known });
    void session.end();
  }

  continueIn(session: HttpSession): void {
    this.session = session;
    this.#eventStream?.restart();
  }

  /** Ends the conversation of the transport if the backend speaks another era now. Never rejects. */
  async checkEra(): Promise<void> {
    await this.#replacement?.checkEra();
  }

  sessionLost(): void {
    const reason = this.#replacement === undefined ? SESSION_LOST : this.#replacement.newEra;
    if (reason !== undefined) void this.end({ reason, isExpected: false });
  }

  resumed(): void {
    this.#resumed?.next();
  }

  receiveNotification(message: NotificationMessage, exchange?: HttpExchange): void {
    if (message.method === PROGRESS) {
      const token = numberMeant(message.params.progressToken);
      if (token !== undefined) this.#exchanges?.get(token)?.notify(message);
    } else if (this.#messages?.observed) this.#messages.next(message);
    else exchange?.notify(message);
  }

  receiveRequest(message: RequestMessage, exchange?: HttpExchange): void {
    const { id } = message;
    const question = serverRequest(message, (answer) => {
      if (exchange?.isOver !== true && this.ending === undefined)
        this.session.answer(id, answer, this.ownerId);
    });
    const outcome = gatewayAnswerTo(message.method, this.#profile);
    if (outcome !== 'ask') question.answer(outcome);
    else if (exchange === undefined) this.#messages?.next(question);
    else exchange.emit(question);
  }

  /** Takes a message of the listening stream. */
  receive(message: BackendMessage): void {
    if (message.kind === 'request') this.receiveRequest(message);
    else if (message.kind !== 'notification' || message.method === CANCELLED) return;
    else if (message.method === LOG && this.#profile === undefined) this.#receiveLogLine(message);
    else this.receiveNotification(message);
  }

  /** Log lines carry no id: they belong to the only call under way, unless an earlier caller may have caused them. */
  #receiveLogLine(message: NotificationMessage): void {
    const isSure = this.#exchanges?.size === 1 && this.#callers?.isSingle !== false;
    const [only] = isSure ? (this.#exchanges?.values() ?? []) : [];
    if (only === undefined) this.receiveNotification(message);
    else only.notify(message);
  }

  #listen(): void {
    const { endpoint, options } = this.backend;
    // Each client may have a stream, which must not take a connection of the pool.
    this.#eventStream ??= new BackendEventStream(
      (headers, answer) =>
        endpoint.get(headers, answer, { isLasting: this.#profile !== undefined, jar: this.session.jar }),
      this,
      options.clock,
    );
    this.#eventStream.start();
  }

  async #end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.ending = closed;
    this.#eventStream?.stop();
    this.#replacement?.abort();
    const abandoned = [...(this.#exchanges?.values() ?? [])].map((exchange) =>
      exchange.abandon(closed.reason),
    );
    if (closed.isExpected) {
      await Promise.all(abandoned);
      await this.#replacement?.settled();
      await Promise.all([this.backend.deleteSession(this.session), this.#replacement?.abandoned]);
    } else if (this.#replacement?.newEra !== undefined) await this.#replacement.abandoned;
    if (last !== undefined) await last();
    this.backend.handshakes.release(this.handshake);
    this.#messages?.complete();
    this.closed$.next(closed);
    this.closed$.complete();
  }
}
