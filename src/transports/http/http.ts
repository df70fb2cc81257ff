// The http row of the table of transports: Streamable HTTP, in every protocol era, with or without a program to run. A server that
// refuses it and speaks the older transport, HTTP+SSE, gets that (sse/sse.ts). A transport has the connections to one backend, its
// own conversation and those of single clients (http-conversation.ts); managed-http.ts runs the program behind an endpoint.

import type { Observable } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import type { ClientProfile, ServerMessage } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import type { JsonObject } from '../../domain/json.ts';
import { LruMap } from '../../domain/lru-map.ts';
import type { Peer } from '../../domain/mcp.ts';
import { boundedHandshake } from '../bounded-handshake.ts';
import { type ClientInfo, isRefusal } from '../handshake.ts';
import { openSse } from '../sse/sse.ts';
import type {
  Closed,
  OmittedTool,
  OpenOptions,
  TransportDiagnostics,
  TransportType,
  Upstream,
} from '../transport.ts';
import type { HttpBackend } from './http-call.ts';
import { connectTo, type HttpConnection } from './http-connection.ts';
import { HttpConversation } from './http-conversation.ts';
import { HttpOpenings, sessionDeletes } from './http-openings.ts';
import { HttpSession } from './http-session.ts';
import { type EndpointTransport, openManaged } from './managed-http.ts';
import { ToolHeaders, toolListing } from './tool-headers.ts';

/** Connects to `endpoint`; when the definition has a `command`, too, the gateway runs that program behind it. */
export const http: TransportType = {
  open: (definition, options) =>
    definition.command === undefined
      ? openHttp(definition, options)
      : openManaged(definition, options, openHttp),
};

/** Statuses at `initialize` of a server without Streamable HTTP. Source: MCP 2025-03-26 basic/transports#backwards-compatibility. */
const UNSUPPORTED_STATUSES: ReadonlySet<number> = new Set([400, 404, 405]);

/** Different peers remembered: the greeting of a server may depend on what its client declares, in a few variants. */
const PEERS_REMEMBERED = 16;

type Options = Pick<OpenOptions, 'client' | 'handshakeTimeoutMs' | 'memory' | 'scheduler'>;

/**
 * Tries HTTP+SSE at the same URL when Streamable HTTP was refused. If that fails, too, the first failure counts. Rejects with
 * BACKEND_UNAVAILABLE, `delivered: 'no'`; nothing is left open then.
 */
export async function openHttp(
  definition: InstanceDefinition,
  options: OpenOptions,
): Promise<EndpointTransport> {
  const startedAtMs = performance.now();
  const { client, signal, handshakeTimeoutMs, memory, scheduler } = options;
  const connection = connectTo(definition, options);
  const session = new HttpSession(connection, { client, handshakeTimeoutMs });
  try {
    await openInTime(session, signal, { handshakeTimeoutMs, scheduler });
    return new HttpTransport(connection, session, { client, handshakeTimeoutMs, memory, scheduler });
  } catch (thrown) {
    await connection.destroy();
    const { initializeStatus = 0 } = session;
    if (!isRefusal(thrown) || !UNSUPPORTED_STATUSES.has(initializeStatus)) throw thrown;
    const leftMs = Math.max(1, handshakeTimeoutMs - (performance.now() - startedAtMs));
    return openSse(definition, { ...options, handshakeTimeoutMs: leftMs }).catch(() => {
      throw thrown;
    });
  }
}

function openInTime(
  session: HttpSession,
  signal: AbortSignal,
  { handshakeTimeoutMs: timeoutMs, scheduler }: Pick<Options, 'handshakeTimeoutMs' | 'scheduler'>,
): Promise<void> {
  const bounds = { signal, timeoutMs, scheduler, abort: () => session.close() };
  return boundedHandshake(bounds, () => session.open(signal));
}

class HttpTransport implements EndpointTransport, HttpBackend {
  readonly kind = 'http';
  readonly connection: HttpConnection;
  readonly client: ClientInfo;
  readonly deleteSession: HttpBackend['deleteSession'];
  readonly toolHeaders: ToolHeaders;
  readonly messages$: Observable<ServerMessage>;
  readonly closed$: Observable<Closed>;
  readonly omitted$: Observable<OmittedTool>;
  readonly #options: Options;
  readonly #own: HttpConversation;
  readonly #openings: HttpOpenings<HttpConversation>;
  /** The peers of the last handshakes, once each: a greeting may be kilobytes, and thousands of sessions refer to one. */
  readonly #peers = new LruMap<Peer>(PEERS_REMEMBERED);
  #hasNoSessions: boolean;
  #closing: Promise<void> | undefined;

  constructor(connection: HttpConnection, session: HttpSession, options: Options) {
    const { client, scheduler, handshakeTimeoutMs, memory } = options;
    memory.omitted ??= new Map();
    this.connection = connection;
    this.client = client;
    this.#options = options;
    this.deleteSession = sessionDeletes(scheduler);
    const listing$ = toolListing((request) => this.exchange(request));
    this.toolHeaders = new ToolHeaders(listing$, memory.omitted);
    this.omitted$ = this.toolHeaders.omitted$;
    this.#own = new HttpConversation(this, session, undefined);
    this.messages$ = this.#own.messages$;
    this.closed$ = this.#own.closed$;
    this.#hasNoSessions = session.peer.era === 'bare';
    this.#openings = new HttpOpenings(handshakeTimeoutMs, scheduler);
  }

  get peer(): Peer {
    return this.#own.peer;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return this.#own.exchange(request);
  }

  notify(method: string, params: JsonObject): void {
    this.#own.notify(method, params);
  }

  openUpstream(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId: string = ANONYMOUS.id,
  ): Promise<Upstream | undefined> {
    const isOffered = (): boolean => !this.#hasNoSessions;
    const start = (anySignal: AbortSignal) => this.#openFor(profile, anySignal);
    return this.#openings.open({ ownerId, signal, isOffered, start });
  }

  diagnostics(): TransportDiagnostics {
    return { pid: null, stderr: [] };
  }

  close(): Promise<void> {
    return this.end({ reason: 'closed by the gateway', expected: true });
  }

  /** Closes for the given reason. The backend is notified only when the end is expected. */
  end(closed: Closed): Promise<void> {
    this.#closing ??= this.#end(closed);
    return this.#closing;
  }

  ended(conversation: HttpConversation): void {
    this.#openings.forget(conversation);
  }

  /** Finds out, too, whether the backend keeps sessions of single clients. */
  async #openFor(profile: ClientProfile, signal: AbortSignal): Promise<HttpConversation | undefined> {
    const { client, handshakeTimeoutMs } = this.#options;
    const { era } = this.peer;
    const intern = (peer: Peer) => this.#intern(peer);
    const options = { client, handshakeTimeoutMs, profile, intern, known: era };
    const session = new HttpSession(this.connection, options);
    try {
      await openInTime(session, signal, this.#options);
    } catch (thrown) {
      if (era !== 'modern' || !isRefusal(thrown)) throw thrown;
    }
    this.#hasNoSessions ||= session.peer.era !== 'legacy';
    return this.#hasNoSessions ? undefined : new HttpConversation(this, session, profile);
  }

  #intern(peer: Peer): Peer {
    const text = JSON.stringify(peer);
    const known = this.#peers.get(text) ?? peer;
    this.#peers.set(text, known);
    return known;
  }

  #end(closed: Closed): Promise<void> {
    const upstreams = this.#openings.end(closed);
    return this.#own.end(closed, async () => {
      await upstreams;
      await this.connection.destroy();
    });
  }
}
