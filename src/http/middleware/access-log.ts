// One log line per request, written at its end. Never bodies, headers or query strings: they may hold secrets. A session
// appears as its fingerprint, an API key as its id.

import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import { sessionFingerprint } from '../../actors/session-fingerprint.ts';
import { parseKey } from '../../auth/api-keys.ts';
import { NO_PRINCIPAL } from '../../domain/account.ts';
import { HTTP_LIMITS } from '../limits.ts';
import {
  CLIENT_CLOSED_REQUEST,
  type HttpContext,
  type HttpMiddleware,
  type RequestState,
} from '../request.ts';

/** Logs at `info`. While that level is off, a request costs one comparison. */
export function accessLog(log: Logger): HttpMiddleware {
  return (context, next) => {
    if (!log.isLevelEnabled('info')) return next();
    const startMs = performance.now();
    context.res.once('close', () => log.info(lineOf(context, performance.now() - startMs), 'request'));
    return next();
  };
}

/** Also of an unknown session: repeated requests for it are worth a look. */
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
    principal: state.principal === NO_PRINCIPAL ? undefined : state.principal?.id,
    refused_key: res.statusCode === 401 ? namedKey(req.headers) : undefined,
    template: state.template?.slice(0, HTTP_LIMITS.loggedPathCharacters),
    instance_id: state.instanceId,
    error_code: state.errorCode,
    rpc_method: state.rpcMethod?.slice(0, HTTP_LIMITS.loggedPathCharacters),
    rpc_messages: state.rpcMessages,
    rpc_error: state.rpcError,
    session: sessionOf(req, state),
    // The answer began, but the client did not read all of it.
    cut: res.writableFinished ? undefined : true,
  };
}

/** Characters of `Authorization` that are read. */
const LONGEST = 128;

/**
 * The id of the API key in a refused request: it shows the use of a revoked key, and is no secret. Undefined without a
 * key, or for an unreadable one.
 */
export function namedKey(headers: IncomingHttpHeaders): string | undefined {
  const { 'x-api-key': key, authorization } = headers;
  const sent = typeof key === 'string' ? key : authorization?.slice(0, LONGEST).replace(/^bearer +/i, '');
  return sent === undefined ? undefined : parseKey(sent.trim())?.id;
}
