// One conversation over HTTP: calls and a listening stream in one session. The conversation of the transport itself declares no
// capabilities and replaces a lost session; that of a client ends with its session. Thousands of the latter are idle, so
// everything that only calls and messages need is created on first use.

import { AsyncSubject, Observable, Subject } from 'rxjs';
import { CallMap } from '../../domain/call-map.ts';
import { type ClientProfile, type ServerMessage, serverRequest } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { BackendMessage, NotificationMessage, RequestMessage } from '../../domain/jsonrpc.ts';
import { CANCELLED, LOG, type Peer, PROGRESS } from '../../domain/mcp.ts';
import { gatewayReplyTo, RecentCallers, withEraMetadata } from '../handshake.ts';
import type { Closed, Upstream } from '../transport.ts';
import { type CallConversation, type HttpBackend, HttpCall, SESSION_LOST } from './http-call.ts';
import { HttpListener, type ListenerSink } from './http-listener.ts';
import type { HttpSession } from './http-session.ts';

export class HttpConversation implements Upstream, CallConversation, ListenerSink {
  readonly peer: Peer;
  readonly session: HttpSession;
  readonly backend: HttpBackend;
  readonly closed$ = new AsyncSubject<Closed>();
  ending: Closed | undefined;
  readonly #profile: ClientProfile | undefined;
  /** Set for the conversation of the transport itself, which several callers share. */
  readonly #callers: RecentCallers | undefined;
  #calls: CallMap<HttpCall> | undefined;
  #listener: HttpListener | undefined;
  #messages$: Subject<ServerMessage> | undefined;
  #closing: Promise<void> | undefined;

  /** `profile`: the client; undefined for the conversation of the transport itself. */
  constructor(backend: HttpBackend, session: HttpSession, profile: ClientProfile | undefined) {
    this.peer = session.peer;
    this.session = session;
    this.backend = backend;
    this.#profile = profile;
    if (profile !== undefined) return;
    this.#callers = new RecentCallers(() => performance.now());
    this.#listen();
    session.onReopened(() => this.#listener?.restart());
  }

  get calls(): CallMap<HttpCall> {
    this.#calls ??= new CallMap();
    return this.#calls;
  }

  get reopens(): boolean {
    return this.#profile === undefined;
  }

  get messages$(): Observable<ServerMessage> {
    return new Observable((subscriber) => {
      if (this.ending !== undefined) return subscriber.complete();
      this.#messages$ ??= new Subject();
      const subscription = this.#messages$.subscribe(subscriber);
      this.#listen();
      return () => {
        subscription.unsubscribe();
        if (this.#messages$?.observed === true) return;
        this.#messages$ = undefined;
        if (this.#profile !== undefined) this.#listener?.stop();
      };
    });
  }

  get opening(): Promise<void> | undefined {
    return this.#listener?.opening;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      const call = new HttpCall(this, withEraMetadata(request, this.peer, this.backend.client), subscriber);
      this.#callers?.note(request.caller);
      // The call may cause messages on the listening stream, so the stream must be open first.
      const opening = this.reopens ? undefined : this.opening;
      if (opening === undefined) call.start();
      else void opening.then(() => call.start());
      return () => call.cancel();
    });
  }

  notify(method: string, params: JsonObject): void {
    if (this.ending === undefined) void this.session.notify(method, params);
  }

  close(): Promise<void> {
    return this.end({ reason: 'closed by the gateway', expected: true });
  }

  /** The backend is notified only when the end is expected, or it has changed its era. `last` runs before `closed$` emits. */
  end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#end(closed, last);
    return this.#closing;
  }

  sessionLost(): void {
    const reason = this.reopens ? this.session.newEra : SESSION_LOST;
    if (reason !== undefined) void this.end({ reason, expected: false });
  }

  receiveNotification(message: NotificationMessage, call?: HttpCall): void {
    if (message.method === PROGRESS) {
      const token = message.params.progressToken;
      if (typeof token === 'number') this.#calls?.get(token)?.notify(message);
    } else if (this.#messages$ !== undefined) this.#messages$.next(message);
    else call?.notify(message);
  }

  receiveRequest(message: RequestMessage, call?: HttpCall): void {
    const question = serverRequest(message, (reply) => {
      if (call?.isOver !== true && this.ending === undefined) void this.session.reply(message.id, reply);
    });
    const outcome = gatewayReplyTo(message.method, this.#profile);
    if (outcome !== 'ask') question.answer(outcome);
    else if (call === undefined) this.#messages$?.next(question);
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
    const { session, reopens } = this;
    const { connection } = this.backend;
    // Each client may have a stream, which must not take a connection of the pool.
    this.#listener ??= new HttpListener(
      (headers, answer) => connection.get(headers, answer, { isLasting: !reopens }),
      session,
      this,
    );
    this.#listener.start();
  }

  async #end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.ending = closed;
    this.#listener?.stop();
    this.session.close();
    const abandoned = [...(this.#calls?.values() ?? [])].map((call) => call.abandon(closed.reason));
    if (closed.expected) {
      await Promise.all(abandoned);
      await this.backend.deleteSession(this.session);
    } else if (this.session.newEra !== undefined) await this.session.end(); // that of the handshake which found it
    if (last !== undefined) await last();
    this.#messages$?.complete();
    this.closed$.next(closed);
    this.closed$.complete();
  }
}
