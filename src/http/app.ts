// The HTTP application: the list of middlewares, top to bottom = order of execution, and the routes under it.
// Sockets, ports and time limits of connections belong to whoever listens (src/listeners.ts).

import type { RequestListener } from 'node:http';
import { Router } from '@koa/router';
import Koa from 'koa';
import type { Logger } from 'pino';
import { LIMITS } from '../domain/limits.ts';
import type { Gateway } from '../gateway.ts';
import { readDirect } from './body/read-direct.ts';
import { readKoaBody } from './body/read-koa-body.ts';
import type { RequestState, RouteMiddleware } from './context.ts';
import { EventStreams } from './event-stream.ts';
import { accessLog } from './middleware/access-log.ts';
import { body } from './middleware/body.ts';
import { errors } from './middleware/errors.ts';
import { guard } from './middleware/guard.ts';
import { handle } from './middleware/handle.ts';
import { requestId } from './middleware/request-id.ts';
import { unmatched } from './middleware/unmatched.ts';
import { createProxies } from './proxies.ts';
import type { Route } from './route.ts';
import { ROUTES } from './routes/index.ts';

/** How an app is made. */
export interface AppOptions {
  readonly log: Logger;
  /** Names this gateway may be called by, besides those of this machine. */
  readonly allowedHosts: readonly string[];
  /** Web origins that may call from a browser. */
  readonly allowedOrigins: readonly string[];
  /** Addresses and networks whose X-Forwarded-* headers are believed. */
  readonly trustedProxies: readonly string[];
  /** Version of this package. */
  readonly build: string;
  /** Largest request body. Default LIMITS.requestBodyBytes. */
  readonly maxBodyBytes?: number;
  /** Distance of the comments that keep an event stream alive. Default 15 000 ms. */
  readonly keepAliveMs?: number;
}

/** What a listener needs. */
export interface HttpApp {
  /** For http.createServer. */
  callback(): RequestListener;
  /** Ends every open event stream with an error event: they would hold the server open for ever. */
  closeStreams(): void;
}

/** Builds the application around a gateway. Nothing is shared between two apps. */
export function createApp(gateway: Gateway, options: AppOptions): HttpApp {
  const { log, allowedHosts, allowedOrigins, build, maxBodyBytes = LIMITS.requestBodyBytes } = options;
  const proxies = createProxies(options.trustedProxies);
  const streams = new EventStreams(
    options.keepAliveMs === undefined ? {} : { keepAliveMs: options.keepAliveMs },
  );
  const readers = {
    direct: body(readDirect(maxBodyBytes), maxBodyBytes),
    'koa-body': body(readKoaBody(maxBodyBytes), maxBodyBytes),
  };

  // Per route, after the list below. Authentication goes first here: it knows the route's scope, and nobody's body is
  // read before it is known who sends it.
  const stepsOf = (route: Route): RouteMiddleware[] => [
    ...(route.request.body === undefined ? [] : [readers[route.reader ?? 'koa-body']]),
    handle(route, { gateway, build }, proxies, streams),
  ];
  const router = new Router<RequestState, Record<never, never>>({ sensitive: true });
  for (const route of ROUTES) router.register(route.path, [route.method], stepsOf(route));

  const app = new Koa<RequestState, Record<never, never>>();
  app.use(requestId());
  app.use(accessLog(log));
  app.use(errors(log));
  app.use(guard({ allowedHosts, allowedOrigins, proxies }));
  app.use(router.routes());
  app.use(unmatched(router));
  // Only broken connections end up here: everything else is answered by `errors`.
  app.on('error', (error: Error) => log.debug({ err: error }, 'connection broke'));

  const callback = app.callback();
  return {
    callback: () => (request, response) => void callback(request, response),
    closeStreams: () => streams.close(),
  };
}
