// HTTP+SSE, the transport of revision 2024-11-05, towards clients: a GET opens an event stream that names a path first;
// messages are posted there, and all answers are sent on that stream. A connection carries one legacy session, which
// legacy-endpoint.ts serves like any other.
// Source: MCP 2024-11-05 basic/transports#http-with-sse; 2025-03-26 basic/transports#backwards-compatibility; ADR 50.

import { randomBytes } from 'node:crypto';
import { ReplaySubject, Subscription } from 'rxjs';
import { sessionLimit, sessionShareLimit } from '../../domain/error-catalogue.ts';
import { shuttingDown } from '../../domain/errors.ts';
import { OwnerShares } from '../../domain/held-bytes.ts';
import { isJsonObject } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { readBody } from '../client-message.ts';
import {
  type CommonOptions,
  type McpReply,
  type McpRequest,
  type McpStream,
  noteError,
  type SseOpening,
} from '../endpoint-types.ts';
import { checkContentType, checkGetTypes, namesEventStream } from '../headers.ts';
import type { Backends, McpSession } from '../ports.ts';
import { faultOf, refused, rpcFailureOf } from '../rpc.ts';
import type { LegacyEndpoint } from './legacy-endpoint.ts';

/** Connections without a session: their clients have yet to initialize. Over it: SESSION_LIMIT. */
export const MAX_UNOPENED = 1_000;
/** How long a connection may have no session, in ms. After it the stream ends. */
export const UNOPENED_MS = 60_000;

/** Revision of the requests of a connection, whatever revision its session has: it excludes polling. */
const SERVED_VERSION = '2024-11-05';

/** Headers that a client of HTTP+SSE does not know when it opens its stream. */
const LATER_HEADERS = ['mcp-session-id', 'last-event-id', 'mcp-protocol-version'] as const;

/** Undefined when it opens no stream. At a shared path a GET must name event streams, and no header of later transports. */
export function opensSse({ method, headers, sse }: McpRequest): SseOpening | undefined {
  if (method !== 'GET' || sse === undefined || sse.isOnly) return sse;
  const isOld = LATER_HEADERS.every((name) => headers[name] === undefined) && namesEventStream(headers);
  return isOld ? sse : undefined;
}

/** The connections of one endpoint, by id. Its owner closes it. */
export class LegacySse {
  readonly #legacy: LegacyEndpoint;
  readonly #options: CommonOptions;
  readonly #connections = new Map<string, SseConnection>();
  #isClosed = false;

  constructor(legacy: LegacyEndpoint, options: CommonOptions) {
    this.#legacy = legacy;
    this.#options = options;
  }

  /** Opens a stream. Throws RpcFailure (406), SESSION_LIMIT, SHUTTING_DOWN. */
  open({ messagesPath }: SseOpening, request: McpRequest, reply: McpReply, backends: Backends): void {
    checkGetTypes(request.headers);
    if (this.#isClosed) throw shuttingDown();
    this.#checkRoom(request.principal.id);
    const id = randomBytes(32).toString('base64url');
    const connection = new SseConnection(request, reply, backends, {
      legacy: this.#legacy,
      onFault: this.#options.onFault,
      clock: this.#options.clock,
      ended: () => this.#connections.delete(id),
    });
    this.#connections.set(id, connection);
    connection.begin(`${messagesPath}?sessionId=${id}`);
  }

  /** 404 unless the stream is open, at this path, and the caller's own. Errors of the request itself go to the stream. */
  post(id: string, request: McpRequest, reply: McpReply, backends: Backends): void | Promise<void> {
    const connection = this.#connections.get(id);
    if (connection === undefined || !connection.isOf(request)) {
      throw refused(404, 'Session not found', RPC.sessionNotFound);
    }
    checkContentType(request.headers);
    return connection.receive(readBody(request.body), request, reply, backends);
  }

  /** Ends every stream with its session, and refuses new ones. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#options.scheduler.each([...this.#connections.values()], (connection) => connection.close());
  }

  /** Bounds the connections without a session; the others are bounded as sessions. */
  #checkRoom(ownerId: string): void {
    const unopened = new OwnerShares(MAX_UNOPENED);
    for (const other of this.#connections.values()) if (!other.hasSession) unopened.take(other.ownerId);
    if (unopened.isFull) throw sessionLimit(MAX_UNOPENED);
    if (unopened.isShareFull(ownerId)) throw sessionShareLimit(unopened.share);
  }
}

interface SseConnectionDeps extends Pick<CommonOptions, 'onFault' | 'clock'> {
  readonly legacy: LegacyEndpoint;
  ended(): void;
}

/** One event stream, and the session that it carries once its client has initialized. */
class SseConnection {
  readonly ownerId: string;
  readonly #opened: McpRequest;
  readonly #reply: McpReply;
  readonly #backends: Backends;
  readonly #deps: SseConnectionDeps;
  readonly #stream: McpStream;
  /** Emits once when the stream is over; replayed. */
  readonly #gone$ = new ReplaySubject<void>(1);
  #session: McpSession | undefined;
  #isOpening = false;
  #isClosed = false;
  readonly #endExpiry: () => void;

  constructor(opened: McpRequest, reply: McpReply, backends: Backends, deps: SseConnectionDeps) {
    this.ownerId = opened.principal.id;
    this.#opened = opened;
    this.#reply = reply;
    this.#backends = backends;
    this.#deps = deps;
    this.#stream = reply.stream();
    this.#endExpiry = deps.clock.background.alarm(UNOPENED_MS, () => this.hasSession || this.close());
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  begin(messagesPath: string): void {
    this.#stream.send({ name: 'endpoint', data: messagesPath });
    this.#reply.onGone(() => this.close());
  }

  isOf({ principal, template }: McpRequest): boolean {
    return principal.id === this.ownerId && template === this.#opened.template;
  }

  async receive(parsed: unknown, request: McpRequest, reply: McpReply, backends: Backends): Promise<void> {
    if (isJsonObject(parsed) && parsed.method === 'initialize' && parsed.id !== undefined) {
      return this.#initialize(parsed, request, reply, backends);
    }
    const session = this.#session;
    if (session === undefined) throw refused(400, 'Bad Request: Server not initialized');
    reply.log.sessionId = session.id;
    try {
      await this.#deps.legacy.post(parsed, this.#asOf(request, session), this.#replyAs(reply), backends);
    } catch (thrown) {
      if (rpcFailureOf(thrown).id === null) throw thrown;
      this.#fail(thrown, reply);
    }
    reply.empty(202);
  }

  /** Ends the stream, and the session with all that it owns. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#endExpiry();
    this.#deps.ended();
    this.#stream.end();
    this.#gone$.next();
    if (this.#session !== undefined) this.#deps.legacy.end(this.#session);
  }

  /** Answers 202 at once: a program may have to start. */
  #initialize(parsed: unknown, request: McpRequest, reply: McpReply, backends: Backends): void {
    if (this.#session !== undefined || this.#isOpening) {
      throw refused(400, 'Invalid Request: the session is initialized already', RPC.invalidRequest);
    }
    const answers = this.#replyAs(reply);
    const initializing = this.#deps.legacy.post(parsed, { ...request, headers: {} }, answers, backends);
    this.#isOpening = true;
    reply.empty(202);
    Promise.resolve(initializing)
      .then(() => this.#carry(reply.log.sessionId))
      .catch((thrown: unknown) => this.#fail(thrown, reply))
      .finally(() => {
        this.#isOpening = false;
      });
  }

  /** Carries the session from now on. Messages outside of calls are sent on the stream, too. */
  async #carry(sessionId: string | undefined): Promise<void> {
    const { principal } = this.#opened;
    const session = sessionId === undefined ? undefined : this.#backends.session(sessionId, principal);
    if (session === undefined) return; // the client left, or the session ended
    this.#session = session;
    if (this.#isClosed) return this.#deps.legacy.end(session);
    this.#reply.log.sessionId = session.id;
    // Calls that end with the session are answered in the same turn.
    session.ended$.subscribe(() => setImmediate(() => this.close()));
    const listening = this.#asOf({ ...this.#opened, method: 'GET' }, session);
    try {
      await this.#deps.legacy.get(listening, this.#replyAs(this.#reply), this.#backends);
    } catch (thrown) {
      const fault = faultOf(rpcFailureOf(thrown));
      if (fault !== undefined) this.#deps.onFault(fault);
      this.close();
    }
  }

  #asOf(request: McpRequest, { id }: McpSession): McpRequest {
    const accept = 'text/event-stream';
    const headers = { accept, 'mcp-session-id': id, 'mcp-protocol-version': SERVED_VERSION };
    return { ...request, headers };
  }

  /** The answer to a request that was not begun. */
  #fail(thrown: unknown, reply: McpReply): void {
    const failure = rpcFailureOf(thrown);
    const fault = faultOf(failure);
    if (fault !== undefined) this.#deps.onFault(fault);
    noteError(reply.log, failure.error.code, failure.errorCode);
    this.#send(failure.body);
  }

  /** Does nothing once the stream is over. */
  #send(data: Uint8Array | string): void {
    if (!this.#isClosed) this.#stream.send({ data });
  }

  /** The answer to one POST, or the messages outside of calls, as events of the connection: without ids and statuses. */
  #replyAs({ log }: McpReply): McpReply {
    const connection = this.#stream;
    const listening = new Subscription();
    const complete = () => listening.unsubscribe();
    const event = (data: Uint8Array | string): void => {
      this.#send(data);
      complete();
    };
    const stream: McpStream = {
      send: ({ data }) => data.length > 0 && this.#send(data),
      end: complete,
      get unsentBytes() {
        return connection.unsentBytes;
      },
    };
    return {
      ...{ log, event, empty: complete },
      json: (_status, body) => event(body),
      stream: () => stream,
      onGone: (listener) => listening.add(this.#gone$.subscribe(listener)),
    };
  }
}
