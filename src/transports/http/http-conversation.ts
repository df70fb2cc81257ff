// One conversation over HTTP: calls and a listening stream in one session. The transport has one of its own, which declares
// nothing and opens a lost session anew; each client has another, which ends with its session. Thousands of the latter are idle,
// so everything but the session is made on first use.

import { AsyncSubject, Observable, Subject } from 'rxjs';
import { CallMap } from '../../domain/call-map.ts';
import {
  type ClientProfile,
  type ServerMessage,
  type ServerRequest,
  serverRequest,
} from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { BackendMessage, NotificationMessage, RequestMessage } from '../../domain/jsonrpc.ts';
import type { Peer } from '../../domain/mcp.ts';
import { type ClientInfo, LoneCaller, outcomeOf, withEraMetadata } from '../handshake.ts';
import type { Closed, Upstream } from '../transport.ts';
import type { CallConversation } from './http-call.ts';
import { CANCELLED, FORGOTTEN, HttpCall, LOG, PROGRESS } from './http-call.ts';
import type { HttpConnection } from './http-connection.ts';
import { connectionClosed } from './http-failures.ts';
import { HttpListener, type Send } from './http-listener.ts';
import type { HttpSession } from './http-session.ts';
import type { ToolHeaders } from './tool-headers.ts';

/** Longest wait of a call, or of a listener, for the stream of its conversation that is being opened. */
const STREAM_OPENS_MS = 250;

/** Dependencies that the conversations with one backend share. */
export interface HttpBackend {
  readonly connection: HttpConnection;
  /** Name and version of the gateway. */
  readonly client: ClientInfo;
  readonly toolHeaders: ToolHeaders;
  /** Deletes a session on the backend, when few others are being deleted. Never rejects. */
  readonly deleteSession: (session: HttpSession) => Promise<void>;
  /** Called when the backend is in doubt, though no exchange failed. */
  doubted(): void;
  /** Counts a message that is about nothing. */
  unmatched(): void;
  /** A conversation is over. */
  ended(conversation: HttpConversation): void;
}

/** A conversation in an open session. */
export class HttpConversation implements Upstream, CallConversation {
  readonly peer: Peer;
  readonly session: HttpSession;
  readonly #backend: HttpBackend;
  readonly #profile: ClientProfile | undefined;
  /** The conversation of the transport itself, which several callers share. */
  readonly #lone: LoneCaller | undefined;
  #calls: CallMap<HttpCall> | undefined;
  #listener: HttpListener | undefined;
  #messages$: Subject<ServerMessage> | undefined;
  #closed$: AsyncSubject<Closed> | undefined;
  /** Set as soon as it begins to end. */
  #ending: Closed | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /** `profile`: the client it is for; undefined for the transport itself. */
  constructor(backend: HttpBackend, session: HttpSession, profile: ClientProfile | undefined) {
    this.peer = session.peer;
    this.session = session;
    this.#backend = backend;
    this.#profile = profile;
    if (profile !== undefined) return;
    this.#lone = new LoneCaller(() => performance.now());
    this.#listen();
    session.onReopened(() => this.#listener?.startAnew());
  }

  get connection(): HttpConnection {
    return this.#backend.connection;
  }

  get toolHeaders(): ToolHeaders {
    return this.#backend.toolHeaders;
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
      if (this.#ending !== undefined) return subscriber.complete();
      this.#messages$ ??= new Subject();
      const subscription = this.#messages$.subscribe(subscriber);
      this.#listen();
      return () => {
        subscription.unsubscribe();
        this.#nobodyListens();
      };
    });
  }

  get opening(): Promise<void> | undefined {
    const { promise, resolve } = Promise.withResolvers<void>();
    const callOff = this.#listener?.whenSettled(resolve, STREAM_OPENS_MS);
    return callOff && promise;
  }

  get closed$(): Observable<Closed> {
    if (this.#closed$ === undefined) {
      this.#closed$ = new AsyncSubject();
      this.#tellClosed();
    }
    return this.#closed$;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      if (this.#ending !== undefined) {
        subscriber.error(connectionClosed(this.#ending.reason, false));
        return undefined;
      }
      const call = new HttpCall(this, withEraMetadata(request, this.peer, this.#backend.client), subscriber);
      this.#lone?.note(request.caller);
      // Messages of the backend on its stream because of this call must find the stream open.
      const wait = this.#profile === undefined ? undefined : this.#listener;
      const callOff = wait?.whenSettled(() => call.start(), STREAM_OPENS_MS);
      if (callOff === undefined) call.start();
      return () => {
        callOff?.();
        call.cancel();
      };
    });
  }

  notify(method: string, params: JsonObject): void {
    if (this.#ending === undefined) void this.session.notify(method, params);
  }

  close(): Promise<void> {
    return this.end({ reason: 'closed by the gateway', expected: true });
  }

  /**
   * Ends like `close`, for the given reason. The backend is only notified when the end is expected; `last` runs before the
   * end is reported.
   */
  end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#end(closed, last);
    return this.#closing;
  }

  forgotten(): void {
    void this.end({ reason: FORGOTTEN, expected: false });
  }

  notified(message: NotificationMessage, call?: HttpCall): void {
    if (message.method === PROGRESS) this.#progressed(message);
    else if (this.#messages$ !== undefined) this.#messages$.next(message);
    else call?.notify(message);
  }

  asked(message: RequestMessage, call?: HttpCall): void {
    const outcome = outcomeOf(message.method, this.#profile);
    if (outcome !== 'ask') void this.session.reply(message.id, outcome);
    else if (call === undefined) this.#messages$?.next(this.#questionOf(message));
    else call.tell(this.#questionOf(message, call));
  }

  doubted(): void {
    this.#backend.doubted();
  }

  unmatched(): void {
    this.#backend.unmatched();
  }

  #questionOf(message: RequestMessage, call?: HttpCall): ServerRequest {
    return serverRequest(message, (reply) => {
      if (call?.isOver !== true && this.#ending === undefined) void this.session.reply(message.id, reply);
    });
  }

  #progressed(message: NotificationMessage): void {
    const token = message.params.progressToken;
    const call = typeof token === 'number' ? this.#calls?.get(token) : undefined;
    if (call === undefined) this.unmatched();
    else call.notify(message);
  }

  #receive(message: BackendMessage): void {
    if (message.kind === 'request') this.asked(message);
    else if (message.kind !== 'notification') this.unmatched();
    else if (message.method === CANCELLED) return;
    else if (message.method === LOG && this.#profile === undefined) this.#logged(message);
    else this.notified(message);
  }

  /** Log lines carry no id. They are about the only call under way, or about one that has ended: see LoneCaller. */
  #logged(message: NotificationMessage): void {
    const isSure = this.#calls?.size === 1 && this.#lone?.isAlone !== false;
    const [only] = isSure ? (this.#calls?.values() ?? []) : [];
    if (only === undefined) this.notified(message);
    else only.notify(message);
  }

  #listen(): void {
    this.#listener ??= this.#newListener();
    this.#listener.start();
  }

  #newListener(): HttpListener {
    const { connection, session, reopens } = this;
    // The transport itself has one stream; the others are as many as there are clients.
    const send: Send = (headers, answer) =>
      reopens ? connection.get(headers, answer) : connection.listen(headers, answer);
    return new HttpListener(send, session, {
      receive: (message) => this.#receive(message),
      forgotten: () => {
        if (!reopens) this.forgotten();
      },
    });
  }

  #nobodyListens(): void {
    if (this.#messages$?.observed === true) return;
    this.#messages$ = undefined;
    if (this.#profile !== undefined) this.#listener?.stop();
  }

  async #end(closed: Closed, last?: () => Promise<void>): Promise<void> {
    this.#ending = closed;
    this.#listener?.stop();
    this.session.close();
    const farewells = [...(this.#calls?.values() ?? [])].map((call) => call.abandon(closed.reason));
    if (closed.expected) {
      await Promise.all(farewells);
      await this.#backend.deleteSession(this.session);
    }
    if (last !== undefined) await last();
    this.#messages$?.complete();
    this.#isClosed = true;
    this.#tellClosed();
    this.#backend.ended(this);
  }

  #tellClosed(): void {
    if (this.#ending === undefined || !this.#isClosed || this.#closed$ === undefined) return;
    this.#closed$.next(this.#ending);
    this.#closed$.complete();
  }
}
