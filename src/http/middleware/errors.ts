// The one exit for errors: whatever is thrown further in becomes an error body with its status and headers.

import type { Logger } from 'pino';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import { drain } from '../body/drain.ts';
import type { HttpContext, HttpMiddleware } from '../context.ts';
import { ClientGone } from '../context.ts';
import { errorReply } from '../error-reply.ts';
import type { BytesReply } from '../reply.ts';
import { respond } from '../respond.ts';

/** Answers errors. What is no GatewayError becomes INTERNAL_ERROR without details; those are in the log, by request id. */
export function errors(log: Logger): HttpMiddleware {
  return async (context, next) => {
    try {
      await next();
    } catch (thrown) {
      if (thrown instanceof ClientGone) context.respond = false;
      else answer(context, asGatewayError(thrown), log);
    }
  };
}

function answer(context: HttpContext, error: GatewayError, log: Logger): void {
  const { state } = context;
  state.errorCode = error.code;
  if (error.code === 'INTERNAL_ERROR')
    log.error({ err: error, request_id: state.requestId }, 'request failed');
  refuse(context, errorReply(error, state.requestId, { viewer: state.principal }));
}

/** Answers with a refusal, whatever was read of the request. */
export function refuse(context: HttpContext, reply: BytesReply): void {
  const { req: request, res: response } = context;
  if (response.headersSent) {
    // Half an answer is out: a broken connection is the only way left to say that it is not whole.
    context.respond = false;
    response.destroy();
    return;
  }
  respond(context, reply);
  drain(request);
}
