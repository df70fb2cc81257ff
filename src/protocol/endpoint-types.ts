// Requests and replies of the MCP endpoint, independent of the HTTP library and of sockets: src/http reads and writes
// them.

import { defer, finalize, type Observable } from 'rxjs';
import type { Principal } from '../domain/accounts/principal.ts';
import type { AskingCalls } from '../domain/calls/asking-calls.ts';
import type { CallReport } from '../domain/calls/exchange.ts';
import type { ErrorCode } from '../domain/errors/errors.ts';
import type { UserShares } from '../domain/memory/user-shares.ts';
import type { InstanceOnNode } from '../domain/nodes/forwarding.ts';
import type { HttpHeaders } from '../domain/text.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { ClientRequest } from './client-message.ts';
import type { Backends } from './endpoint-backends.ts';
import type { KnownTasks, TaskViews } from './known-tasks.ts';
import type { StateKeys } from './modern/state-cipher.ts';

/** One HTTP request to the endpoint. Host, origin, credentials, scope and name are already checked. */
export interface McpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: HttpHeaders;
  /** The bytes of the body; empty for GET and DELETE. At most LIMITS.requestBodyBytes. */
  readonly body: Buffer;
  /** The name in the path, of a template or a view; undefined for the path of all templates. */
  readonly pathName: string | undefined;
  readonly principal: Principal;
  readonly requestId?: string | undefined;
  /** The way in which a GET of a client of HTTP+SSE (revision 2024-11-05) may open a stream at this path. Default: none. */
  readonly sse?: SseOpening | undefined;
  /**
   * The id of the session whose stream carries the answer to a POST at a path for messages of HTTP+SSE. Such a client names its
   * session in no header.
   */
  readonly sseSessionId?: string | undefined;
  /** True when the client is connected to another node. Default: false. */
  readonly isForwarded?: boolean | undefined;
  /**
   * Counts the memory of the body until the returned function is called, for exchanges that need it after the
   * response. Undefined for a small body, which is not counted.
   */
  readonly holdBody?: (() => () => void) | undefined;
  /**
   * Passes the request to the node that made this id (of a session or an asking call), and its answer to the client.
   * Undefined when this is the node that made it; false when no node has it. Throws NODE_UNAVAILABLE.
   */
  readonly forward?: ((id: string) => Promise<boolean> | undefined) | undefined;
  /**
   * Passes the `initialize` of a session, once it is counted, to another node, and the answer to the client. The node is that of
   * these instances; for `opener`, one that can open the session where this node cannot. Undefined when there is no such
   * node; false when that node does not open it.
   */
  readonly openAt?:
    | ((where: readonly InstanceOnNode[] | 'opener') => Promise<boolean> | undefined)
    | undefined;
  /** Throws QUEUE_FULL while requests and waiting messages of the caller use all the memory that they may. */
  requireRoom(): void;
  /** Opens the report of one request of the message, or of a batch. */
  report(request: Pick<ClientRequest, 'id' | 'method' | 'params'>): CallReport;
  /** Counts requests for the rate limit. Throws RATE_LIMIT_EXCEEDED. Returns a promise only when Redis counts. */
  consumeRateLimit(requests: number): void | Promise<void>;
}

/** A request to the endpoint, with the writer of its reply, and the backends of its path. */
export interface ServedRequest {
  readonly request: McpRequest;
  readonly reply: ReplyWriter;
  readonly backends: Backends;
}

/** A GET that opens a stream of HTTP+SSE. */
export interface SseOpening {
  /** True for a path that serves only this transport. At any other path the headers must show that the client uses it. */
  readonly isOnly: boolean;
  /** The path to which the client is to POST its messages; the id of the session is added as `sessionId`. */
  readonly messagesPath: string;
}

/**
 * Writes the reply to a request. Exactly one of the first four methods is called, or none when the client has disconnected
 * before. After a disconnection they have no effect, and events of a stream are dropped.
 */
export interface ReplyWriter {
  /** Sends one JSON body. Headers are names and values, alternating. */
  json(status: number, body: Uint8Array | string, headers?: readonly string[]): void;
  /** Sends a complete event stream with one event, with status 200. `data` is JSON text. As cheap as `json`. */
  event(data: Uint8Array | string, headers?: readonly string[]): void;
  /** Sends a status without a body: 202 or 204. */
  empty(status: number): void;
  stream(): McpStream;
  /** Calls `listener` when the client disconnects before the answer is complete; at once if it has already. */
  onGone(listener: () => void): void;
  readonly log: McpLog;
}

/** Notes for the log line of a request. The endpoint sets each of them as soon as it is known. */
export interface McpLog {
  /** The instance that answers; also sent as `X-Instance-ID` if the answer has not begun. */
  instanceId?: string;
  rpcMethod?: string;
  /** The number of messages in a batch. */
  rpcMessages?: number;
  /** The JSON-RPC code of an error answer; see noteError. */
  rpcError?: number;
  /** The error code of the gateway; absent for errors of backends. */
  errorCode?: ErrorCode;
  /** The session of the request, when the client did not name it. A credential: only its fingerprint is logged. */
  sessionId?: string;
}

/** Records the error of an answer; only the first one counts. */
export function noteError(log: McpLog, code: number, errorCode?: ErrorCode): void {
  if (log.rpcError !== undefined) return;
  log.rpcError = code;
  if (errorCode !== undefined) log.errorCode = errorCode;
}

/** An open event stream. */
export interface McpStream {
  /** Writes one event. `data` is JSON text, or empty for an event that only carries an id. */
  send(event: McpEvent): void;
  /** Ends the stream; nothing may be sent afterwards. */
  end(): void;
  readonly unsentBytes: number;
}

/** One event of a stream. */
export interface McpEvent {
  readonly data: Uint8Array | string;
  readonly id?: string;
  /** The time that the client waits before it reconnects, in ms. */
  readonly retryMs?: number;
  /**
   * The name of the event. Default: `message`, or none without data. An event of another name may hold any text of
   * one line.
   */
  readonly name?: string;
}

export interface EndpointOptions {
  /**
   * The backends of a path: of the template or view of this name, or of all templates without one. Throws
   * GatewayError when there are none.
   */
  readonly backends: (pathName: string | undefined) => Backends;
  /** Default: there are no views. */
  readonly views?: TaskViews;
  readonly askingCalls: AskingCalls;
  readonly newSessionId: () => string;
  /** Keys of at least 32 random bytes each. The first one encrypts; nodes that share them decrypt each other's texts. */
  readonly stateKeys: StateKeys;
  /**
   * Gets internal errors that end a request under way, or prevent the writing of a message, since no answer shows
   * them. Earlier errors are thrown. It must not throw: see droppingErrors.
   */
  readonly onFault: FaultListener;
  /**
   * Records the first use of this id of a state on all nodes, while the state is valid, and returns a function that
   * takes the use back; undefined for a second use. Both reject with DATABASE_UNAVAILABLE.
   */
  readonly useOnce: (id: string) => Promise<(() => Promise<void>) | undefined>;
  /** Spreads the end of many streams over turns of the event loop. */
  readonly scheduler: TaskScheduler;
  /** The clock; alarms that are due at the same time are spread over turns of the event loop. */
  readonly clock: Clock;
  /** Counts the memory of the profiles and URIs of `subscriptions/listen`. */
  readonly declarations: UserShares;
  /** The most bytes that are buffered for clients that may reconnect. Default: 256 MiB. */
  readonly bufferedBytes?: number | undefined;
}

/** The options that both eras use. */
export type CommonOptions = Pick<EndpointOptions, 'onFault' | 'scheduler' | 'clock'>;

/** The MCP endpoint of one gateway. Throws GatewayError or RpcFailure, only before the answer has begun. */
export interface McpEndpoint {
  readonly tasks: Pick<KnownTasks, 'setPeers' | 'lookUp'>;
  handle(request: McpRequest, reply: ReplyWriter): void | Promise<void>;
  /** Ends the calls that only wait for the answer of a disconnected client, when the gateway stops. */
  dismiss(): Promise<void>;
  /** Ends all open streams. Resolves when all have ended. */
  close(): Promise<void>;
}

export type FaultListener = (error: unknown) => void;

/** The exchange, which counts the body as held while it has a subscriber: it may outlive its HTTP request. */
export function holdingBody<T>(
  events$: Observable<T>,
  { holdBody }: Pick<McpRequest, 'holdBody'>,
): Observable<T> {
  if (holdBody === undefined) return events$;
  return defer(() => events$.pipe(finalize(holdBody())));
}
