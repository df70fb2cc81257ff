// Turns thrown errors into answers: an error body with status and headers, or a JSON-RPC error on routes of the
// MCP endpoint.

import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { asGatewayError, GatewayError, hasCode } from '../../domain/errors/errors.ts';
import { NOT_HOLDER, REFUSED_HEADER } from '../../domain/nodes/forwarding.ts';
import { noteError } from '../../protocol/endpoint-types.ts';
import { resumesSse } from '../../protocol/legacy/legacy-sse.ts';
import { internalFaultOf, type RpcFailure, rpcFailureOf } from '../../protocol/rpc.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext, HttpMiddleware, RequestState, RouteMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { errorReply } from '../replies/error-reply.ts';
import { type BytesReply, bytes, LATER_STREAM } from '../replies/reply.ts';
import { respond } from '../replies/respond.ts';
import { identify, requestIds } from './request-id.ts';

/**
 * The first middleware: gives the request its id. An error that is not a GatewayError becomes INTERNAL_ERROR; the log
 * has its details, by id. Logs, and disconnects, when the answer to an error fails: its promise never rejects.
 */
export function errors(log: Pick<Logger, 'error'>): HttpMiddleware {
  const newId = requestIds();
  return (context, next) => {
    identify(context, newId);
    return guarded(next, (thrown) => {
      try {
        if (!(thrown instanceof ClientGone)) answer(context, asGatewayError(thrown), log);
      } catch (failure) {
        log.error({ err: failure }, 'request failed');
        context.res.destroy();
      }
    });
  };
}

/**
 * Runs a function, and `failed` with the error that it throws or rejects with. No promise is made for a function that returns
 * none.
 */
function guarded(run: () => unknown, failed: (thrown: unknown) => void): unknown {
  try {
    const done = run();
    return done instanceof Promise ? done.catch(failed) : done;
  } catch (thrown) {
    return failed(thrown);
  }
}

function answer(context: HttpContext, error: GatewayError, log: Pick<Logger, 'error'>): void {
  const { state } = context;
  state.errorCode = error.code;
  if (error.code === 'INTERNAL_ERROR')
    log.error({ err: error, request_id: state.requestId }, 'request failed');
  const challenge = state.challenge?.(context, error);
  refuse(context, errorReply(error, state.requestId, { viewer: state.principal, challenge }));
}

/**
 * Answers with an error, however much of the request was read. A client that opens its stream of HTTP+SSE again
 * and may come later gets an empty stream.
 */
export function refuse(context: HttpContext, reply: BytesReply): void {
  const { req: request, res: response } = context;
  if (response.headersSent) {
    // A part of the answer is already sent: only a closed connection shows that it is incomplete.
    response.destroy();
    return;
  }
  const isLater = reply.headers?.includes('Retry-After') && !reply.headers.includes(REFUSED_HEADER);
  respond(context, isLater && resumesSse(request) ? LATER_STREAM : reply);
  drainBody(request);
}

/**
 * The middleware for routes of the MCP endpoint, after `authorize`: answers a failure with a JSON-RPC error and its HTTP status.
 * The log has the details of internal errors, by request id. The second check of a caller with a late body is answered as the
 * first one.
 */
export function rpcErrors(log: Logger): RouteMiddleware {
  return (context, next) =>
    guarded(next, (thrown) => {
      if (thrown instanceof ClientGone || [401, 403].includes(asGatewayError(thrown).status)) throw thrown;
      answerRpc(context, rpcFailureOf(thrown), log);
    });
}

function answerRpc(context: HttpContext, failure: RpcFailure, log: Logger): void {
  const { cause, status, body, headers } = failure;
  const fault = internalFaultOf(failure);
  noteError(context.state, failure.error.code, failure.errorCode);
  if (fault !== undefined) log.error({ err: fault, request_id: context.state.requestId }, 'request failed');
  const instanceId = cause instanceof GatewayError ? cause.facts.instanceId : undefined;
  const moved = movedHeaders(context.state, cause);
  refuse(context, bytes(status, body, { headers: [...(headers ?? []), ...moved], instanceId }));
}

const MOVED = [REFUSED_HEADER, NOT_HOLDER];
/** The headers by which clients send no further request on this connection, which a node that stops would break. */
const LEAVING = [...MOVED, 'Connection', 'close'];

/** A session that finds no room here may find it at the node that got its `initialize`. */
function movedHeaders({ forwarded, rpcMethod }: RequestState, cause: unknown): readonly string[] {
  if (forwarded === undefined) return [];
  if (rpcMethod === 'initialize' && hasCode(cause, 'SESSION_LIMIT')) return MOVED;
  return mayGoOnAtPeer(cause) ? LEAVING : [];
}

/** True when this node stops, or another one has the session: the node that forwarded the request goes on. */
function mayGoOnAtPeer(cause: unknown): boolean {
  if (!(cause instanceof GatewayError) || cause.delivered !== 'no') return false;
  return cause.code === 'SHUTTING_DOWN' || cause.code === 'NODE_UNAVAILABLE';
}

/**
 * Discards the rest of a refused body, so that the answer arrives and the connection can be used again: closing at once would
 * reset the connection, and many clients would report that instead of the 413. More than HTTP_LIMITS.drainedBytes ends it.
 */
function drainBody(request: Readable): void {
  if (request.readableEnded || request.destroyed) return;
  let left: number = HTTP_LIMITS.drainedBytes;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  // A disconnect meanwhile is not an error.
  request.on('error', () => request.destroy());
  request.resume();
}
