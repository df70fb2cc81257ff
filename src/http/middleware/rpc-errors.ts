// The exit for errors of routes that speak JSON-RPC, behind the door: an error message with the HTTP status that belongs
// to it. Who may not come in at all is told by errors.ts.

import type { Logger } from 'pino';
import { GatewayError } from '../../domain/errors.ts';
import { failureOf, faultOf, type RpcFailure } from '../../protocol/rpc-failure.ts';
import type { HttpContext, RouteMiddleware } from '../context.ts';
import { ClientGone } from '../context.ts';
import { noteFailure } from '../mcp-reply.ts';
import { bytes } from '../reply.ts';
import { refuse } from './errors.ts';

/** Answers errors. What a failure does not tell of an error of our own is in the log, by request id. */
export function rpcErrors(log: Logger): RouteMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (thrown) {
      if (thrown instanceof ClientGone) throw thrown;
      answer(context, failureOf(thrown), log);
    }
  };
}

function answer(context: HttpContext, failure: RpcFailure, log: Logger): void {
  const { cause, status, body, headers } = failure;
  const fault = faultOf(failure);
  noteFailure(context.state, failure.error.code, failure.errorCode);
  if (fault !== undefined) log.error({ err: fault, request_id: context.state.requestId }, 'request failed');
  const instanceId = cause instanceof GatewayError ? cause.facts.instanceId : undefined;
  refuse(context, bytes(status, body, { headers, ...(instanceId === undefined ? {} : { instanceId }) }));
}
