// The app of the listener for Prometheus and for probes, which has no routes.

import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import { GatewayError } from '../domain/errors/errors.ts';
import { gatewayStarting } from '../domain/errors/gateway-errors.ts';
import { methodNotAllowed } from '../domain/errors/request-errors.ts';
import { isLoopback } from '../domain/local-address.ts';
import { METRICS_TYPE } from '../metrics/prometheus.ts';
import type { HttpApp } from './app.ts';
import { createProxies } from './callers/proxies.ts';
import type { KoaApp } from './context.ts';
import { errors } from './middleware/error-answers.ts';
import { hostOriginCheck } from './middleware/host-origin-check.ts';
import { NOT_STORED } from './records/schemas.ts';
import { bytes } from './replies/reply.ts';
import { respond } from './replies/respond.ts';
import { ALIVE, startingReply } from './routes/gateway/readiness.ts';
import { appListener } from './routing/route-listener.ts';

const PATHS: ReadonlySet<string> = new Set(['/metrics', '/livez', '/readyz']);

/**
 * Answers only `/metrics`, `/livez` and `/readyz`, without credentials: the bound address decides which callers reach it. On
 * loopback the Host must be this machine or an allowed one, so that no web page reads it by DNS rebinding. `started`: undefined
 * while the gateway starts. Source: ADR 415.
 */
export function createMetricsApp(
  { host, allowedHosts }: { readonly host: string; readonly allowedHosts: readonly string[] },
  started: () => Pick<HttpApp, 'metrics' | 'readiness'> | undefined,
  log: Pick<Logger, 'error'>,
): RequestListener {
  const app: KoaApp = new Koa();
  const origins = { allowedOrigins: [], corsOrigins: [], isPublic: false };
  app.use(errors(log));
  // An app on another address serves other machines, by any host name; web pages cannot read its answers.
  if (isLoopback(host)) app.use(hostOriginCheck({ ...origins, allowedHosts, proxies: createProxies([]) }));
  app.use(async (context) => {
    const { path, method } = context;
    if (!PATHS.has(path))
      throw new GatewayError('NOT_FOUND', 'Only /metrics, /livez and /readyz are served here.');
    if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method, path, ['GET', 'HEAD']);
    const { requestId } = context.state;
    const app = started();
    if (path === '/livez') return respond(context, ALIVE);
    if (path === '/readyz') return respond(context, app?.readiness(requestId) ?? startingReply(requestId));
    if (app === undefined) throw gatewayStarting();
    const text = await app.metrics.text();
    respond(context, { ...bytes(200, text, { headers: NOT_STORED }), type: METRICS_TYPE });
  });
  return appListener(app, log);
}
