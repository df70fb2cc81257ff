// The app of the listener for Prometheus, which has no routes.

import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import { GatewayError } from '../domain/errors/errors.ts';
import { gatewayStarting } from '../domain/errors/gateway-errors.ts';
import { methodNotAllowed } from '../domain/errors/request-errors.ts';
import { isLoopback } from '../domain/local-address.ts';
import { METRICS_TYPE, type Prometheus } from '../metrics/prometheus.ts';
import { createProxies } from './callers/proxies.ts';
import { errors } from './middleware/errors.ts';
import { hostOriginCheck } from './middleware/host-origin-check.ts';
import { NOT_STORED } from './records/schemas.ts';
import { bytes } from './replies/reply.ts';
import { respond } from './replies/respond.ts';
import type { RequestState } from './request.ts';
import { appListener } from './routing/route-listener.ts';

/**
 * Answers only `/metrics`, without credentials: the bound address decides which callers reach it. On loopback the
 * Host must be this machine or an allowed one, so that no web page reads it by DNS rebinding. `metrics`: undefined
 * while the gateway starts.
 */
export function createMetricsApp(
  { host, allowedHosts }: { readonly host: string; readonly allowedHosts: readonly string[] },
  metrics: () => Pick<Prometheus, 'text'> | undefined,
  log: Pick<Logger, 'error'>,
): RequestListener {
  const app = new Koa<RequestState, Record<never, never>>();
  const origins = { allowedOrigins: [], corsOrigins: [], isPublic: false };
  app.use(errors(log));
  // An app on another address serves other machines, by any host name; web pages cannot read its answers.
  if (isLoopback(host)) app.use(hostOriginCheck({ ...origins, allowedHosts, proxies: createProxies([]) }));
  app.use(async (context) => {
    const { path, method } = context;
    if (path !== '/metrics') throw new GatewayError('NOT_FOUND', 'Only /metrics is served here.');
    if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method, path, ['GET', 'HEAD']);
    const source = metrics();
    if (source === undefined) throw gatewayStarting();
    const text = await source.text();
    respond(context, { ...bytes(200, text, { headers: NOT_STORED }), type: METRICS_TYPE });
  });
  return appListener(app, log);
}
