// One conversation over HTTP: calls and a listening stream in one session.

import { AsyncSubject, Observable, Subject } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
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
import { BackendEventStream, type EventStreamSink } from './backend-event-stream.ts';
import { type HttpBackend, HttpCall, type HttpCallHost, SESSION_LOST } from './http-call.ts';
import { type HttpSession, openSession } from './http-session.ts';

/**
 * A conversation of the transport, or of one client. The conversation of the transport itself declares no capabilities
 * and replaces a lost session; that of a client ends with its session. Thousands of the latter are idle, so everything
 * that only calls and messages need is created on first use.
 */
export class HttpConversation implements Conversation, HttpCallHost, EventStreamSink {
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
  #calls: CallMap<HttpCall> | undefined;
  #eventStream: BackendEventStream | undefined;
  #messages: Subject<ServerMessage> | undefined;
  #resumed: Subject<void> | undefined;
  #closing: Promise<void> | undefined;
  #reopening: Promise<void> | undefined;
  #reopeningAbort: AbortController | undefined;
  #checking: Promise<void> | undefined;
  /** Deletes the session that a failed reopening was given, and after a change of the era also the lost one. */
  #abandoned: Promise<unknown> | undefined;
  /**
   * A clause about the new era, set when the backend speaks another era than before, so that no session can replace the lost one.
   */
  #newEra: string | undefined;

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
    this.#callers = new RecentCallers(backend.options.clock.now);
    this.#listen();
  }

  get calls(): CallMap<HttpCall> {
    this.#calls ??= new CallMap();
    return this.#calls;
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
      const call = new HttpCall(
        this,
        withEraMetadata(request, this.handshake, this.backend.options.client),
        subscriber,
      );
      this.#callers?.note(request.callerId);
      // The call may cause messages on the listening stream, so the stream must be open first.
      const listening = this.#profile && this.untilListening;
      if (listening === undefined) call.start();
      else listening.then(() => call.start()).catch((thrown) => subscriber.error(thrown));
      return () => call.cancel();
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

  /** All callers that lost the same session share one handshake. */
  reopen(lost: HttpSession): Promise<void> | undefined {
    if (this.#profile !== undefined) return undefined;
    if (lost !== this.session) return Promise.resolve();
    this.#reopening ??= this.#openAgain().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  async tryAnother(): Promise<void> {
    const { endpoint, options } = this.backend;
    const { signal } = new AbortController(); // it is bounded by the time for a handshake
    const [profile, known] = [this.#profile, this.handshake.era];
    const session = await openSession(endpoint, { ...options, signal, profile, known });
    void session.end();
  }

  /** Ends the conversation if the backend speaks another era now. One check at a time, which leaves no session. Never rejects. */
  checkEra(): Promise<void> {
    this.#checking ??= this.#sessionOfNewEra()
      .then((session) => session && this.end({ reason: this.#noteNewEra(session), isExpected: false }))
      .catch(() => undefined) // it refuses the gateway, too
      .finally(() => {
        this.#checking = undefined;
      });
    return this.#checking;
  }

  sessionLost(): void {
    const reason = this.#profile === undefined ? this.#newEra : SESSION_LOST;
    if (reason !== undefined) void this.end({ reason, isExpected: false });
  }

  resumed(): void {
    this.#resumed?.next();
  }

  receiveNotification(message: NotificationMessage, call?: HttpCall): void {
    if (message.method === PROGRESS) {
      const token = numberMeant(message.params.progressToken);
      if (token !== undefined) this.#calls?.get(token)?.notify(message);
    } else if (this.#messages?.observed) this.#messages.next(message);
    else call?.notify(message);
  }

  receiveRequest(message: RequestMessage, call?: HttpCall): void {
    const question = serverRequest(message, (answer) => {
      if (call?.isOver !== true && this.ending === undefined)
        this.session.answer(message.id, answer, this.ownerId);
    });
    const outcome = gatewayAnswerTo(message.method, this.#profile);
    if (outcome !== 'ask') question.answer(outcome);
    else if (call === undefined) this.#messages?.next(question);
    else call.emit(question);
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
    const isSure = this.#calls?.size === 1 && this.#callers?.isSingle !== false;
    const [only] = isSure ? (this.#calls?.values() ?? []) : [];
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

  async #openAgain(): Promise<void> {
    const { endpoint, options } = this.backend;
    const { era } = this.handshake;
    this.#reopeningAbort = new AbortController();
    const { signal } = this.#reopeningAbort;
    const onAbandoned = (deleted: Promise<void>): void => {
      this.#abandoned = deleted;
    };
    const session = await openSession(endpoint, { ...options, signal, previous: era, onAbandoned });
    if (session.handshake.era !== era)
      throw backendUnavailable(this.#noteNewEra(session), { delivered: 'no', health: 'suspicious' });
    this.session = session;
    this.#eventStream?.restart();
  }

  /** A new session, if it is of another era; undefined if it is not. */
  async #sessionOfNewEra(): Promise<HttpSession | undefined> {
    const { endpoint, options } = this.backend;
    const { era } = this.handshake;
    const { signal } = new AbortController(); // it is bounded by the time for a handshake
    const session = await openSession(endpoint, { ...options, signal, previous: era });
    if (session.handshake.era !== era) return session;
    await session.end();
    return undefined;
  }

  /** The clause about the new era. Abandons the sessions. */
  #noteNewEra(session: HttpSession): string {
    this.#newEra = `it now speaks the ${session.handshake.era} era, and spoke the ${this.handshake.era} era before`;
    this.#abandoned = Promise.all([this.session.end(), session.end()]);
    return this.#newEra;
  }

  async #end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.ending = closed;
    this.#eventStream?.stop();
    this.#reopeningAbort?.abort();
    const abandoned = [...(this.#calls?.values() ?? [])].map((call) => call.abandon(closed.reason));
    if (closed.isExpected) {
      await Promise.all(abandoned);
      await this.#reopening?.catch(() => undefined); // it was aborted
      await Promise.all([this.backend.deleteSession(this.session), this.#abandoned]);
    } else if (this.#newEra !== undefined) await this.#abandoned;
    if (last !== undefined) await last();
    this.#messages?.complete();
    this.closed$.next(closed);
    this.closed$.complete();
  }
}
