// One line per request, written when it is over, however it ended. Never bodies, headers or query strings: they may
// hold secrets. A session is named by its fingerprint, a key by its id.

import type { Logger } from 'pino';
import { sessionFingerprint } from '../../actors/session-fingerprint.ts';
import { NOBODY } from '../../domain/account.ts';
import type { HttpContext, HttpMiddleware, RequestState } from '../context.ts';
import { CLIENT_CLOSED_REQUEST } from '../context.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { namedKey } from '../named-key.ts';

/** Logs at `info`. When that level is off, a request pays for one comparison. */
export function accessLog(log: Logger): HttpMiddleware {
  return (context, next) => {
    if (!log.isLevelEnabled('info')) return next();
    const startMs = performance.now();
    context.res.once('close', () => log.info(lineOf(context, performance.now() - startMs), 'request'));
    return next();
  };
}

/** Also of one that is not known here: that it is asked for again and again is worth a look. */
function sessionOf({ headers }: HttpContext['req'], { sessionId }: RequestState): string | undefined {
  const id = sessionId ?? headers['mcp-session-id'];
  return typeof id === 'string' && id !== '' ? sessionFingerprint(id) : undefined;
}

function lineOf({ req, res, path, state }: HttpContext, ms: number): Record<string, unknown> {
  return {
    method: req.method,
    path: path.slice(0, HTTP_LIMITS.loggedPathCharacters),
    status: res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST,
    ms: Math.round(ms * 10) / 10,
    request_id: state.requestId,
    principal: state.principal === NOBODY ? undefined : state.principal?.id,
    refused_key: res.statusCode === 401 ? namedKey(req.headers) : undefined,
    template: state.template?.slice(0, HTTP_LIMITS.loggedPathCharacters),
    instance_id: state.instanceId,
    error_code: state.errorCode,
    rpc_method: state.rpcMethod?.slice(0, HTTP_LIMITS.loggedPathCharacters),
    rpc_messages: state.rpcMessages,
    rpc_error: state.rpcError,
    session: sessionOf(req, state),
    // The answer began, but the client did not take all of it.
    cut: res.writableFinished ? undefined : true,
  };
}
