// Requests and replies of the MCP endpoint, without HTTP library and sockets: src/http reads and writes them.

import { defer, finalize, type Observable } from 'rxjs';
import type { Principal } from '../domain/accounts/account.ts';
import type { CallQuestions } from '../domain/calls/call-questions.ts';
import type { CallReport } from '../domain/calls/exchange.ts';
import type { ErrorCode } from '../domain/errors/errors.ts';
import type { ByteBudget } from '../domain/memory/held-bytes.ts';
import type { PlacedInstance } from '../domain/nodes/forwarding.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { ClientRequest } from './client-message.ts';
import type { Backends } from './endpoint-backends.ts';
import type { RequestHeaders } from './headers.ts';
import type { StateKeys } from './modern/state-cipher.ts';
import type { TaskLog, TemplatesOfView } from './task-log.ts';

/** One HTTP request to the endpoint. Host, origin, credentials, scope and template were checked before. */
export interface McpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: RequestHeaders;
  /** Bytes of the body; empty for GET and DELETE. At most LIMITS.requestBodyBytes. */
  readonly body: Buffer;
  /** The template of the path; undefined for all templates of the caller. */
  readonly template: string | undefined;
  readonly principal: Principal;
  readonly requestId?: string | undefined;
  /** For a GET: how a client of HTTP+SSE (revision 2024-11-05) may open a stream at this path. Default: not at all. */
  readonly sse?: SseOpening | undefined;
  /** For a POST to a path for the messages of HTTP+SSE: the id of the session whose stream carries the answer. */
  readonly sseConnection?: string | undefined;
  /** Another node has the connection of the client. Default: this one has it. */
  readonly isForwarded?: boolean | undefined;
  /**
   * Counts the memory of the body until the returned function is called, for exchanges that need it after the response.
   * Undefined for a small body, which is not counted.
   */
  readonly holdBody?: (() => () => void) | undefined;
  /**
   * Passes the request to the node that made this id, of a session or a waiting call, and its answer to the
   * client. Undefined when that is this node; false when no node has it. Rejects with NODE_UNAVAILABLE.
   */
  readonly forward?: ((id: string) => Promise<boolean> | undefined) | undefined;
  /**
   * Passes the `initialize` of a session, once it was counted, to the node of these instances, or to one that may
   * open what this node cannot, and the answer to the client. Undefined where there is none; false when that node
   * does not open it.
   */
  readonly openAt?:
    | ((place: readonly PlacedInstance[] | 'opener') => Promise<boolean> | undefined)
    | undefined;
  /** Throws QUEUE_FULL while requests and waiting messages of the caller hold all the memory that they may. */
  requireRoom(): void;
  /** Opens the report of one request of its message, or of a batch. */
  report(request: Pick<ClientRequest, 'id' | 'method' | 'params'>): CallReport;
  /** Throws, or rejects with, RATE_LIMIT_EXCEEDED. Returns a promise only when Redis counts. */
  consumeRateLimit(requests: number): void | Promise<void>;
}

/** A GET that opens a stream of HTTP+SSE. */
export interface SseOpening {
  /** True for a path of that transport alone. At any other path the headers have to show that the client speaks it. */
  readonly isOnly: boolean;
  /** The path that its client is to POST messages to; the id of the session is added as `sessionId`. */
  readonly messagesPath: string;
}

/**
 * The reply to a request. One of the first four methods is called, once; none when the client disconnected before. After that
 * they do nothing, and the events of a stream are dropped.
 */
export interface McpReply {
  /** One JSON body. Headers are names and values, alternating. */
  json(status: number, body: Uint8Array | string, headers?: readonly string[]): void;
  /** An event stream with one event, complete, with status 200. `data` is JSON text. As cheap as `json`. */
  event(data: Uint8Array | string, headers?: readonly string[]): void;
  /** No body: 202, 204. */
  empty(status: number): void;
  stream(): McpStream;
  /** Calls back when the client disconnects before the answer is complete, at once if it has already. */
  onGone(listener: () => void): void;
  readonly log: McpLog;
}

/** Notes for the log line of a request, which its endpoint sets as soon as it knows them. */
export interface McpLog {
  /** The instance that answers; also for `X-Instance-ID`, if the answer has not begun. */
  instanceId?: string;
  rpcMethod?: string;
  /** Number of messages of a batch. */
  rpcMessages?: number;
  /** JSON-RPC code of an error answer; see noteError. */
  rpcError?: number;
  /** Error code of the gateway; absent for errors of backends. */
  errorCode?: ErrorCode;
  /** The session of the request, where the client did not name it. A credential: only its fingerprint is logged. */
  sessionId?: string;
}

/** Notes the error of an answer; the first one counts. */
export function noteError(log: McpLog, code: number, errorCode?: ErrorCode): void {
  if (log.rpcError !== undefined) return;
  log.rpcError = code;
  if (errorCode !== undefined) log.errorCode = errorCode;
}

/** An open event stream. */
export interface McpStream {
  /** Writes one event. `data` is JSON text, or empty for an event that only carries an id. */
  send(event: McpEvent): void;
  /** Ends it; nothing may be sent after. */
  end(): void;
  readonly unsentBytes: number;
}

/** One event of a stream. */
export interface McpEvent {
  readonly data: Uint8Array | string;
  readonly id?: string;
  /** Wait of the client before it reconnects, in ms. */
  readonly retryMs?: number;
  /** Default: `message`, none without data. An event of another name may hold any text of one line. */
  readonly name?: string;
}

export interface EndpointOptions {
  /** The backends of a path: one template, or all templates when it names none. Throws GatewayError when there are none. */
  readonly backends: (template: string | undefined) => Backends;
  readonly templatesOf?: TemplatesOfView;
  readonly questions: CallQuestions;
  /** The id of a new session. */
  readonly newSessionId: () => string;
  /** Each at least 32 random bytes; nodes that share them decrypt each other's texts. The first encrypts. */
  readonly stateKeys: StateKeys;
  /**
   * Receives internal errors that end a request under way, or prevent the writing of a message, since no answer shows them.
   * Earlier errors are thrown. It must not throw: see nonThrowing.
   */
  readonly onFault: FaultListener;
  /**
   * Takes back the first use of this id, on all nodes, within the validity of a confirmation; undefined for a second use. Both:
   * DATABASE_UNAVAILABLE.
   */
  readonly useOnce: (id: string) => Promise<(() => Promise<void>) | undefined>;
  /** Spreads the end of many streams over turns of the event loop. */
  readonly scheduler: TaskScheduler;
  /** Calls alarms that are due at the same time over several turns of the event loop. */
  readonly clock: Clock;
  /** Counts the profiles and URIs of `subscriptions/listen`. */
  readonly declarations: ByteBudget;
  /** Most bytes that are buffered for clients that may reconnect. Default: 256 MiB. */
  readonly bufferedBytes?: number | undefined;
}

/** Options of both eras. */
export type CommonOptions = Pick<EndpointOptions, 'onFault' | 'scheduler' | 'clock'>;

/** The endpoint of one gateway. Throws, or rejects, only before anything was answered: GatewayError or RpcFailure. */
export interface McpEndpoint {
  readonly tasks: Pick<TaskLog, 'shareIn' | 'placesOf'>;
  handle(request: McpRequest, reply: McpReply): void | Promise<void>;
  /** For a stop: ends the calls that only wait for the answer of a client without a connection. */
  dismiss(): Promise<void>;
  /** Ends every open stream. Resolves when all have ended. */
  close(): Promise<void>;
}

export type FaultListener = (error: unknown) => void;

/** The listener, with the errors that it throws dropped: it is called in the middle of answers. Default: no listener. */
export function nonThrowing(listener: FaultListener = () => {}): FaultListener {
  return (error) => {
    try {
      listener(error);
    } catch {
      // The listener for errors failed itself, and there is no other one.
    }
  };
}

/** The exchange, which may outlive its HTTP request. The body counts as held while the exchange has a subscriber. */
export function holdingBody<T>(
  answers$: Observable<T>,
  { holdBody }: Pick<McpRequest, 'holdBody'>,
): Observable<T> {
  if (holdBody === undefined) return answers$;
  return defer(() => answers$.pipe(finalize(holdBody())));
}
