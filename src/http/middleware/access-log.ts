// One log line per request, written at its end, without bodies, headers and query strings, which may hold secrets. A session is
// logged as its fingerprint. Each request is counted and traced here, too.

import type { Logger } from 'pino';
import { withoutCredentials } from '../../domain/accounts/written-credentials.ts';
import type { CallOutcome } from '../../domain/calls/exchange-event.ts';
import { Repeated } from '../../domain/memory/repeated.ts';
import { sessionFingerprint } from '../../domain/sessions/session-fingerprint.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Prometheus } from '../../metrics/prometheus.ts';
import type { Tracing } from '../../tracing/tracing.ts';
import { CLIENT_CLOSED_REQUEST } from '../client-gone.ts';
import {
  type HttpContext,
  type HttpMiddleware,
  type ReportListener,
  type RequestState,
  templateIn,
} from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';

/**
 * Observes each request until its connection is closed or free again: counts its answer by status and error code,
 * logs at `info`, and ends its span. Without that level and without a tracer a request costs two look-ups.
 * Liveness and readiness probes are not traced.
 */
export function observe(
  log: Logger,
  metrics: Pick<Prometheus, 'countAnswer'>,
  traces: Tracing,
  { now }: Clock,
): HttpMiddleware {
  const fingerprints = new Repeated(sessionFingerprint);
  void traces.ready(); // so that the first request is traced, too, when a provider exists already
  return (context, next) => {
    const { res: response, state } = context;
    const startMs = log.isLevelEnabled('info') ? now() : undefined;
    const { spans } = traces;
    if (spans !== undefined && !PROBES.has(context.path))
      state.trace = new spans.RequestSpan(context.req.headers);
    response.on('close', () => {
      metrics.countAnswer(statusOf(response), state.errorCode);
      if (state.trace !== undefined) endTrace(context, fingerprints);
      if (startMs !== undefined) {
        log.info(lineOf(context, now() - startMs, fingerprints), 'request');
        state.isLogged = true;
      }
      state.whenClosed?.();
    });
    state.isObserved = true;
    return next();
  };
}

const PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);

function statusOf(response: HttpContext['res']): number {
  return response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST;
}

/**
 * Logs at `info` the end of an MCP request that the line of its HTTP request does not contain: a request of a
 * batch, or one that continued after its connection.
 */
export function reportLog(log: Logger, { now }: Clock): ReportListener {
  return (report, { state }) => {
    const { requestId, principal, rpcMessages, isLogged, trace } = state;
    if ((rpcMessages === undefined && !isLogged) || !log.isLevelEnabled('info')) return;
    const { method, tool, attempts, outcome, errorCode, sentTo, startMs } = report;
    const line = {
      request_id: requestId,
      principal: principal?.id,
      template: shown(templateIn(state, report)),
      view: report.view,
      instance_id: sentTo?.id,
      rpc_method: shown(method),
      tool: shown(tool),
      attempts,
      outcome,
      error_code: typeof errorCode === 'string' ? errorCode : undefined,
      rpc_error: typeof errorCode === 'number' ? errorCode : undefined,
      trace_id: trace?.traceId,
      ms: Math.round((now() - startMs) * 10) / 10,
    };
    log.info(line, 'call');
  };
}

/** The outcome of a request that was not sent to a backend; undefined for any other message. */
function outcomeWithoutReport({
  rpcMethod,
  rpcMessages,
  rpcError,
  errorCode,
  report,
}: RequestState): CallOutcome | undefined {
  if (rpcMethod === undefined || rpcMessages !== undefined || report !== undefined) return undefined;
  if (rpcMethod.startsWith('notifications/')) return undefined;
  if (errorCode !== undefined) return 'failed';
  return rpcError === undefined ? 'result' : 'error';
}

/** The fingerprint of the session of a request, which most connections repeat. */
function sessionOf(
  { headers, socket }: HttpContext['req'],
  { sessionId }: RequestState,
  fingerprints: Repeated,
): string | undefined {
  const id = sessionId ?? headers['mcp-session-id'];
  return typeof id === 'string' && id !== '' ? fingerprints.of(socket, id) : undefined;
}

/** The id of a sign-in in the middle is also the value of its cookie; that of a connection is an address for one user. */
const SIGN_IN_ID = /(?<=^\/(?:oauth\/(?:interaction|authorize)|connections)\/)[\w-]{32,}/;
/** A device code in a path, as its command shows it or mistyped: logged as `...`. */
const USER_CODE = /(?<=^\/oauth\/device\/)[^/]+/;
const SHOWN_CHARACTERS = 6;

function shortened(id: string): string {
  return `${id.slice(0, SHOWN_CHARACTERS)}...`;
}

/** The path without the secrets of sign-ins; paths of calls have none. */
function withoutSignIn(path: string): string {
  return path.startsWith('/mcp/') ? path : path.replace(SIGN_IN_ID, shortened).replace(USER_CODE, '...');
}

/** The text that a caller wrote, without credentials. */
function shown(text: string | undefined): string | undefined {
  return text && withoutCredentials(text, HTTP_LIMITS.loggedPathCharacters);
}

function lineOf(
  { req, res, path, state }: HttpContext,
  ms: number,
  fingerprints: Repeated,
): Record<string, unknown> {
  // The requests of a batch have lines of their own.
  const report = state.rpcMessages === undefined ? state.report : undefined;
  return {
    method: req.method,
    path: shown(withoutSignIn(path)),
    status: statusOf(res),
    ms: Math.round(ms * 10) / 10,
    request_id: state.requestId,
    principal: state.principal?.id,
    template: shown(templateIn(state, report)),
    view: report?.view,
    instance_id: state.instanceId ?? report?.sentTo?.id,
    forwarded_to: state.forwardedTo,
    error_code: state.errorCode,
    rpc_method: shown(state.rpcMethod ?? report?.method),
    tool: shown(report?.tool),
    attempts: report?.attempts,
    outcome: report?.outcome ?? outcomeWithoutReport(state),
    rpc_messages: state.rpcMessages,
    rpc_error: state.rpcError,
    session: sessionOf(req, state, fingerprints),
    trace_id: state.trace?.traceId,
    // The client did not read the whole answer.
    cut: res.writableFinished ? undefined : true,
  };
}

/** A call that continues without its connection ends the span itself, unless it belongs to a batch. */
function endTrace(context: HttpContext, fingerprints: Repeated): void {
  const { state } = context;
  const isOpen = state.report !== undefined && state.report.outcome === undefined;
  if (isOpen && state.rpcMessages === undefined) state.reportEnded = () => endSpan(context, fingerprints);
  else endSpan(context, fingerprints);
}

function endSpan({ req, res, state }: HttpContext, fingerprints: Repeated): void {
  const report = state.rpcMessages === undefined ? state.report : undefined;
  state.trace?.end({
    httpMethod: req.method ?? '',
    route: state.route,
    status: statusOf(res),
    requestId: state.requestId,
    template: shown(templateIn(state, report)),
    view: report?.view,
    session: sessionOf(req, state, fingerprints),
    attempts: report?.attempts,
    outcome: report?.outcome,
    errorCode: report?.errorCode ?? state.errorCode ?? state.rpcError,
  });
}
