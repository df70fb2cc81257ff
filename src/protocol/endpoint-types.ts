// What goes into the MCP endpoint and what comes out of it, without HTTP library and sockets: src/http writes it.

import { defer, finalize, type Observable } from 'rxjs';
import type { Principal } from '../domain/account.ts';
import type { ErrorCode } from '../domain/error-codes.ts';

/** One HTTP request to the endpoint. Guard, credentials, scope and template were checked before. */
export interface McpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Lower-case names, as Node gives them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Bytes of the body; empty for GET and DELETE. At most LIMITS.requestBodyBytes. */
  readonly body: Uint8Array;
  /** The template of the path; undefined for all templates of the caller. */
  readonly template: string | undefined;
  readonly principal: Principal;
  /** Of a GET: what a client of HTTP+SSE (revision 2024-11-05) may want of this path. Default: nothing. */
  readonly sse?: SseOpening | undefined;
  /** Of a POST to a path for the messages of HTTP+SSE: the id of the connection that the answer goes to. */
  readonly sseConnection?: string | undefined;
  /**
   * Counts the memory of the body until what it returns is called: for what needs it after the response. Undefined for a small
   * body, which is not counted.
   */
  readonly holdBody?: (() => () => void) | undefined;
  /**
   * Counts so many JSON-RPC requests against the caller's limit. Throws, or rejects with, RATE_LIMIT_EXCEEDED. Without
   * a promise when this process counts for itself.
   */
  consumeRateLimit(requests: number): void | Promise<void>;
}

/** How an event stream of HTTP+SSE may be opened by a GET. */
export interface SseOpening {
  /** True for a path of that transport alone. At any other path the headers have to say that the client speaks it. */
  readonly isOnly: boolean;
  /** The path that its client is to POST messages to; the id of the connection is added as `sessionId`. */
  readonly messagesPath: string;
}

/**
 * Where an answer goes. One of the first four is called, once; none only when the client left before. After it left they do
 * nothing: what is sent on a stream then is dropped.
 */
export interface McpReply {
  /** One JSON body. Headers are names and values in turn. */
  json(status: number, body: Uint8Array | string, headers?: readonly string[]): void;
  /** An event stream with one event, complete, with status 200. `data` is JSON text. As cheap as `json`. */
  event(data: Uint8Array | string, headers?: readonly string[]): void;
  /** No body: 202, 204. */
  empty(status: number, headers?: readonly string[]): void;
  /** Begins an event stream with status 200. */
  stream(headers?: readonly string[]): McpStream;
  /** Calls back when the client goes away before the answer is complete; at once if it has. */
  onGone(listener: () => void): void;
  /** Tells who answers: the log, and the `X-Instance-ID` header if the answer has not begun. */
  from(instanceId: string): void;
  /** For the log, like the rest: what its client wants, as the message says it. */
  asks(method: string): void;
  /** How many messages came in one. */
  batches(messages: number): void;
  /** A request is answered with an error of that JSON-RPC code; of several, the first one counts. `errorCode`: the
   *  gateway's own word for it, where it is the one who fails it. */
  fails(code: number, errorCode?: ErrorCode): void;
  /** The session that it is about, where its client did not say so. */
  opens(sessionId: string): void;
}

/** An event stream towards a client. */
export interface McpStream {
  /** Writes one event. `data` is JSON text, or empty for an event that only carries an id. */
  send(event: McpEvent): void;
  /** Ends it; nothing may be sent after. */
  end(): void;
  /** Bytes that the client has not taken yet. */
  readonly unsentBytes: number;
}

/** One event of a stream. */
export interface McpEvent {
  readonly data: Uint8Array | string;
  /** For clients that may resume. */
  readonly id?: string;
  /** Ms a client is to wait before it comes back. */
  readonly retryMs?: number;
  /** Default: `message`, none without data. An event of another name may hold any text of one line. */
  readonly name?: string;
}

/** The endpoint of one gateway. Throws, or rejects, only before anything was answered: GatewayError or RpcFailure. */
export interface McpEndpoint {
  handle(request: McpRequest, reply: McpReply): void | Promise<void>;
  /** Ends every open stream. Resolves when all have ended. */
  close(): Promise<void>;
}

// Who hears of errors of our own that no answer tells. They are told in the middle of answers, which must not depend on
// who listens.

/** Hears of an error. */
export type FaultListener = (error: unknown) => void;

/** The same listener, of which nothing is thrown any more. Without one nobody hears. */
export function nonThrowing(listener: FaultListener = () => {}): FaultListener {
  return (error) => {
    try {
      listener(error);
    } catch {
      // Who was to hear of what went wrong goes wrong itself: nobody is left to be told.
    }
  };
}

// An exchange that may outlive the HTTP request it came with counts the memory of that request's body until it ends.

/** The same exchange; while it is subscribed to, the body counts as held. */
export function holdingBody<T>(
  answers$: Observable<T>,
  { holdBody }: Pick<McpRequest, 'holdBody'>,
): Observable<T> {
  if (holdBody === undefined) return answers$;
  return defer(() => answers$.pipe(finalize(holdBody())));
}
