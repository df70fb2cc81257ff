// HTTP+SSE, the transport of revision 2024-11-05, towards clients: a GET opens an event stream that names a path
// first; messages are posted there, and all answers are sent on that stream. A connection carries one legacy
// session, which legacy-endpoint.ts serves like any other. The first event has an id, so that a client that lost
// its stream because the gateway was restarted can continue its session on another one. A client whose stream led
// through a node that died gets the lost messages again. Source: MCP 2024-11-05 basic/transports#http-with-sse;
// 2025-03-26 basic/transports#backwards-compatibility; ADR 50, ADR 145, ADR 165.

import { filter, firstValueFrom, Subject } from 'rxjs';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { sessionLimit } from '../../domain/errors/session-errors.ts';
import { UserShares } from '../../domain/memory/user-shares.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import { startsWithin } from '../../domain/time/clock-streams.ts';
import { readBody } from '../client-message.ts';
import type {
  CommonOptions,
  EndpointOptions,
  McpRequest,
  ServedRequest,
  SseOpening,
} from '../endpoint-types.ts';
import { checkContentType, checkGetTypes, namesEventStream } from '../headers.ts';
import { rpcFailureOf } from '../rpc.ts';
import type { LegacyEndpoint } from './legacy-endpoint.ts';
import { sessionOf, unknownSession } from './legacy-request.ts';
import { lostWithGateway } from './legacy-traffic.ts';
import { RESUME_MS, SseConnection } from './sse-connection.ts';
import { SsePosition, sessionOfEvent, unansweredAt } from './sse-position.ts';

/** Connections without a session: their clients have yet to initialize. Over it: SESSION_LIMIT. */
export const MAX_UNOPENED = 1_000;
/** Headers that a client of HTTP+SSE does not know when it opens its stream. */
const LATER_HEADERS = ['mcp-session-id', 'mcp-protocol-version'] as const;

/**
 * The result is undefined when it opens no stream. At a shared path a GET must name event streams, and no header of later
 * transports.
 */
export function opensSse({ method, headers, sse }: McpRequest): SseOpening | undefined {
  if (method !== 'GET' || sse === undefined || sse.isOnly) return sse;
  const isOld = LATER_HEADERS.every((name) => headers[name] === undefined) && namesEventStream(headers);
  const isOther = headers['last-event-id'] !== undefined && sessionOfEvent(headers) === undefined;
  return isOld && !isOther ? sse : undefined;
}

/** True for a client that opens its stream again. */
export function resumesSse({
  method,
  headers,
}: Pick<McpRequest, 'headers'> & { readonly method?: string | undefined }): boolean {
  return method === 'GET' && headers['mcp-session-id'] === undefined && sessionOfEvent(headers) !== undefined;
}

type SseOptions = CommonOptions & Pick<EndpointOptions, 'newSessionId'>;

/** The connections of one endpoint, by the id of their session, which the stream names before it exists. Its owner closes it. */
export class LegacySse {
  readonly #legacy: LegacyEndpoint;
  readonly #options: SseOptions;
  readonly #connections = new Map<string, SseConnection>();
  /** The sessions that continue on another stream. */
  readonly #resumed = new Subject<string>();
  #isClosed = false;

  constructor(legacy: LegacyEndpoint, options: SseOptions) {
    this.#legacy = legacy;
    this.#options = options;
  }

  /**
   * Opens a stream: a first one, or another one for the session of the last event that the client has. Throws
   * RpcFailure (406; 404 when the session is over), SESSION_LIMIT, SHUTTING_DOWN.
   */
  open({ messagesPath }: SseOpening, served: ServedRequest): void | Promise<void> {
    const { request, reply } = served;
    const { headers, principal } = request;
    checkGetTypes(headers);
    const resumedId = sessionOfEvent(headers);
    if (resumedId !== undefined)
      return this.#resume(resumedId, messagesPath, served).catch((thrown: unknown) => {
        if (!isOfLostCalls(headers, thrown)) throw thrown;
        const stream = reply.stream();
        const position = new SsePosition(resumedId, headers);
        for (const id of position.resume(headers, () => false).lost) {
          position.next();
          position.answer([id]);
          stream.send({ data: lostWithGateway(id), id: position.eventId });
        }
        stream.end(); // the next attempt names no requests, and gets the 404 of the session
      });
    if (this.#isClosed) throw shuttingDown();
    this.#checkRoom(principal.id);
    this.#connect(this.#options.newSessionId(), served).attach(request, reply, messagesPath);
  }

  /**
   * 404 unless the stream is open, at this path, and the caller's own. The session of a client that has not opened
   * its stream again waits for it. Errors of the request itself go to the stream.
   */
  post(id: string, served: ServedRequest): void | Promise<void> {
    const { request } = served;
    const connection = this.#connections.get(id);
    if (connection === undefined || !connection.hasStream)
      return this.#resumption(id, served).then(() => this.post(id, served));
    if (!connection.isOf(request)) throw unknownSession();
    checkContentType(request.headers);
    return connection.receive(readBody(request.body), served);
  }

  /** Ends every stream, and refuses new ones. ClientSessions ends the sessions. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#resumed.complete();
    return this.#options.scheduler.each([...this.#connections.values()], (connection) => connection.leave());
  }

  #connect(id: string, { request, backends }: ServedRequest): SseConnection {
    const connection = new SseConnection(id, request, backends, {
      legacy: this.#legacy,
      onFault: this.#options.onFault,
      clock: this.#options.clock,
      ended: () => this.#connections.delete(id),
    });
    this.#connections.set(id, connection);
    return connection;
  }

  async #resume(id: string, path: string, served: ServedRequest) {
    const { request, reply } = served;
    const isOpen = this.#connections.has(id); // the loss of its stream was not noticed
    const session = isOpen ? undefined : await this.#sessionOf(id, served);
    if (this.#isClosed) throw shuttingDown();
    const known = this.#connections.get(id);
    const connection = known ?? this.#connect(id, served);
    if (!connection.isOf(request)) throw unknownSession();
    connection.attach(request, reply, path, session);
    if (known === undefined && session !== undefined) void connection.carry(session);
    this.#resumed.next(id);
  }

  /** A session that is open, or can be recovered. Throws RpcFailure (404). */
  #sessionOf(id: string, { request, backends }: ServedRequest): McpSession | Promise<McpSession> {
    if (id === '') throw unknownSession();
    return sessionOf({ request: { ...request, sseSessionId: id }, backends });
  }

  /** Resolves when the session continues on another stream. Throws RpcFailure (404) after RESUME_MS. */
  async #resumption(id: string, served: ServedRequest): Promise<void> {
    await this.#sessionOf(id, served);
    if (this.#hasStream(id)) return;
    const resumed$ = this.#resumed.pipe(filter((each) => each === id));
    const inTime$ = resumed$.pipe(startsWithin(this.#options.clock, RESUME_MS, unknownSession));
    await firstValueFrom(inTime$, { defaultValue: undefined });
    if (this.#isClosed) throw shuttingDown();
    if (!this.#hasStream(id)) throw unknownSession(); // it has ended meanwhile
  }

  #hasStream(id: string): boolean {
    return this.#connections.get(id)?.hasStream === true;
  }

  /** Bounds the connections without a session; the others are bounded as sessions. */
  #checkRoom(ownerId: string): void {
    const unopened = new UserShares(MAX_UNOPENED);
    for (const other of this.#connections.values()) if (!other.hasSession) unopened.add(other.ownerId);
    const exceeded = unopened.exceededBy(ownerId);
    if (exceeded !== undefined) throw sessionLimit(exceeded);
  }
}

/** The session is over, and the client would wait for the answers to its calls. */
function isOfLostCalls(headers: McpRequest['headers'], thrown: unknown): boolean {
  return rpcFailureOf(thrown).status === 404 && unansweredAt(headers).length > 0;
}
