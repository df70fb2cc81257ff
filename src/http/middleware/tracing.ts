// Traces requests while tracing is on: a span is named by its MCP request (request.ts) and ended here.

import type { Tracing } from '../../tracing/tracing.ts';
import { CLIENT_CLOSED_REQUEST, type HttpContext, type HttpMiddleware } from '../request.ts';
import { sessionOf } from './access-log.ts';

/** Without a tracer it costs a look-up per request. Liveness and readiness probes are not traced. */
export function tracing(traces: Tracing): HttpMiddleware {
  void traces.ready(); // so that the first request is traced, too, when a provider exists already
  return (context, next) => {
    const { spans } = traces;
    if (spans === undefined || PROBES.has(context.path)) return next();
    const span = spans.request(context.req.headers);
    context.state.trace = span;
    context.res.on('close', () => {
      const { state } = context;
      const isOpen = state.report !== undefined && state.report.outcome === undefined;
      // A call that continues without its connection ends the span itself, unless it is one of a batch.
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
    session: sessionOf(req, state),
    attempts: report?.attempts,
    outcome: report?.outcome,
    errorCode: report?.errorCode ?? state.errorCode ?? state.rpcError,
  });
}
