// Traces each request while the process traces: its span is begun with its MCP request (call-report.ts), and ended here.

import { sessionFingerprint } from '../../actors/session-fingerprint.ts';
import type { Tracing } from '../../tracing/tracing.ts';
import {
  CLIENT_CLOSED_REQUEST,
  type HttpContext,
  type HttpMiddleware,
  type RequestState,
} from '../request.ts';

/** Without a tracer it costs a look-up per request. Probes of liveness are not traced. */
export function tracing(door: Tracing): HttpMiddleware {
  void door.ready(); // where a provider is there already, the first request is traced
  return (context, next) => {
    const { spans } = door;
    if (spans === undefined || PROBES.has(context.path)) return next();
    const span = spans.request(context.req.headers);
    context.state.trace = span;
    context.res.on('close', () => {
      const { state } = context;
      const isOpen = state.report !== undefined && state.report.outcome === undefined;
      // A call that goes on without its connection ends its span itself; those of a batch are too many for one.
      if (isOpen && state.rpcMessages === undefined) state.reportEnded = () => endSpan(context);
      else endSpan(context);
    });
    return next();
  };
}

const PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);

function endSpan({ req, res, state }: HttpContext): void {
  const report = state.rpcMessages === undefined ? state.report : undefined;
  state.trace?.end({
    httpMethod: req.method ?? '',
    route: state.route,
    status: res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST,
    requestId: state.requestId,
    template: state.template ?? report?.sentTo?.template,
    session: sessionOf(req.headers['mcp-session-id'], state),
    attempts: report?.attempts,
    outcome: report?.outcome,
    errorCode: report?.errorCode ?? state.errorCode ?? state.rpcError,
  });
}

function sessionOf(header: string | string[] | undefined, { sessionId }: RequestState): string | undefined {
  const id = sessionId ?? header;
  return typeof id === 'string' && id !== '' ? sessionFingerprint(id) : undefined;
}
