// The way to one Streamable HTTP backend: joins connections, session, calls and the listening stream to a Transport.
// Each of them has its own file (http-*.ts); the program behind an endpoint is started in managed-http.ts.

import { Observable, ReplaySubject, Subject } from 'rxjs';
import { backendUnavailable, GatewayError } from '../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import type { BackendMessage } from '../domain/jsonrpc.ts';
import type { Peer } from '../domain/mcp.ts';
import { type ClientInfo, dress } from './era.ts';
import { type CallHost, HttpCall, type Notification, PROGRESS } from './http-call.ts';
import { HttpConnection } from './http-connection.ts';
import { connectionClosed, openingCalledOff } from './http-failures.ts';
import { HttpListener } from './http-listener.ts';
import { HttpSession } from './http-session.ts';
import type { BackendNotification, Closed, OpenOptions, Transport, TransportFacts } from './transport.ts';

/**
 * Connects to the endpoint of a definition and shakes hands. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`;
 * nothing is left open after a rejection.
 */
export async function openHttp(definition: InstanceDefinition, options: OpenOptions): Promise<HttpTransport> {
  const { client, deniedNetworks } = options;
  const handshakeTimeoutMs = Math.ceil(options.handshakeTimeoutMs);
  const timeLimit = AbortSignal.timeout(handshakeTimeoutMs);
  let connection: HttpConnection | undefined;
  try {
    const { endpoint = '', headers } = definition;
    connection = new HttpConnection({ endpoint, headers, deniedNetworks });
    const session = new HttpSession(connection, { client, handshakeTimeoutMs });
    await session.open(AbortSignal.any([options.signal, timeLimit]));
    return new HttpTransport(connection, session, client);
  } catch (thrown) {
    await connection?.destroy();
    if (options.signal.aborted) throw openingCalledOff(thrown);
    if (timeLimit.aborted) throw undelivered(`no handshake within ${handshakeTimeoutMs / 1000} s`, thrown);
    throw thrown instanceof GatewayError
      ? new GatewayError(thrown.code, thrown.message, { ...thrown.facts, delivered: 'no' })
      : undelivered('its endpoint cannot be used', thrown);
  }
}

/** An open way to an HTTP backend. Made by `openHttp`. */
export class HttpTransport implements Transport, CallHost {
  readonly kind = 'http';
  readonly peer: Peer;
  readonly connection: HttpConnection;
  readonly session: HttpSession;
  readonly calls = new Map<number, HttpCall>();
  readonly #client: ClientInfo;
  readonly #listener: HttpListener;
  readonly #messages$ = new Subject<BackendNotification>();
  readonly #closed$ = new ReplaySubject<Closed>(1);
  #strayMessages = 0;
  #closing: Promise<void> | undefined;

  constructor(connection: HttpConnection, session: HttpSession, client: ClientInfo) {
    this.connection = connection;
    this.session = session;
    this.peer = session.peer;
    this.#client = client;
    this.#listener = new HttpListener(connection, session, (message) => this.#heard(message));
    this.#listener.start();
    session.onReopened(() => this.#listener.start());
  }

  get messages$(): Observable<BackendNotification> {
    return this.#messages$;
  }

  get closed$(): Observable<Closed> {
    return this.#closed$;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      if (this.#closing !== undefined) {
        subscriber.error(connectionClosed('closed by the gateway', false));
        return undefined;
      }
      const call = new HttpCall(this, dress(request, this.peer, this.#client), subscriber);
      call.start();
      return () => call.cancel();
    });
  }

  facts(): TransportFacts {
    return { pid: null, stderr: [], strayMessages: this.#strayMessages };
  }

  close(): Promise<void> {
    return this.end({ reason: 'closed by the gateway', expected: true });
  }

  /** Ends like `close`, for the given reason. The backend is only told when the end is expected. */
  end(closed: Closed): Promise<void> {
    this.#closing ??= this.#end(closed);
    return this.#closing;
  }

  notified(message: Notification): void {
    // Log lines carry no id. With one call under way there is no doubt whose they are; with more there is.
    const [only] = message.method === LOG && this.calls.size === 1 ? this.calls.values() : [];
    if (only !== undefined) {
      only.hear(message);
      return;
    }
    if (message.method !== PROGRESS) {
      this.#messages$.next({ method: message.method, params: message.params });
      return;
    }
    const token = message.params.progressToken;
    const call = typeof token === 'number' ? this.calls.get(token) : undefined;
    if (call === undefined) this.stray();
    else call.hear(message);
  }

  stray(): void {
    this.#strayMessages += 1;
  }

  #heard(message: BackendMessage): void {
    if (message.kind === 'notification') this.notified(message);
    else if (message.kind === 'request') void this.session.reply(message);
    else this.stray();
  }

  async #end(closed: Closed): Promise<void> {
    this.#listener.stop();
    this.session.close();
    await Promise.all([...this.calls.values()].map((call) => call.abandon(closed.reason)));
    if (closed.expected) await this.session.end();
    await this.connection.destroy();
    this.#messages$.complete();
    this.#closed$.next(closed);
    this.#closed$.complete();
  }
}

const LOG = 'notifications/message';

function undelivered(reason: string, cause: unknown): GatewayError {
  return backendUnavailable(reason, { delivered: 'no', cause });
}
