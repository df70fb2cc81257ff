// Makes the listener of a table of routes: calls by a look-up, all other requests by koa and its router. The
// middleware is the same on both ways.

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Router as KoaRouter } from '@koa/router';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { ForwardedCaller } from '../../domain/nodes/forwarding.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { BodyMiddleware } from '../body/body-middleware.ts';
import type { HttpMiddleware, KoaApp, KoaContext, RequestState, RouteContext } from '../context.ts';
import { PlainContext, plainCalls } from './plain-call.ts';
import type { HttpRoute } from './route.ts';

/** The CommonJS form of the router: its ES modules import node:http; see server/sockets/listeners.ts. */
const { Router }: typeof import('@koa/router') = createRequire(import.meta.url)('@koa/router');

/** Diagnostics channel: every request to the routes of any app of the process, published before the answer. */
const ARRIVALS = channel('stagedoor:request');

/** `caller`: of a request that another node forwarded. */
export type AppListener = (
  request: IncomingMessage,
  response: ServerResponse,
  caller?: ForwardedCaller,
) => void;

/** Routes, and the middleware of their requests. */
export interface RouteTable {
  readonly routes: readonly HttpRoute[];
  /** Middleware of every request, in the order of its execution. */
  readonly first: readonly HttpMiddleware[];
  /** The middleware of a route after it; `readBody` comes after its authorization. */
  middlewareOf<C extends RouteContext>(
    route: HttpRoute,
    readBody: readonly HttpMiddleware<C>[],
  ): readonly HttpMiddleware<C>[];
  /** Serves requests besides those of routes. Default: there are none. */
  readonly besides?: HttpMiddleware | undefined;
  /** Answers a request without a route. */
  unmatched(router: Pick<KoaRouter, 'match'>): HttpMiddleware;
}

/** Composes the middleware of each route once. The first one (middleware/error-answers.ts) answers the errors of the others. */
export function routeListener(
  table: RouteTable,
  bodies: BodyMiddleware,
  gateway: Pick<Gateway, 'hasTemplate' | 'views'>,
  log: Pick<Logger, 'error'>,
): AppListener {
  const { routes, first, middlewareOf } = table;
  const plain = routes.flatMap((route) => {
    const readBody = route.unlessTemplate === undefined ? bodies.direct(route) : undefined;
    if (readBody === undefined) return [];
    return [{ route, serve: compose<RouteContext>([...first, ...middlewareOf(route, readBody)]) }];
  });
  const router = new Router<RequestState, Record<never, never>>({ sensitive: true });
  for (const route of routes) {
    const serve = compose<KoaContext & RouteContext>(middlewareOf(route, bodies.of(route)));
    const row = router.register(route.path, [route.method], unlessTemplate(route, gateway, serve));
    // The router adds HEAD to every GET; at the MCP endpoint it would open a stream that is never read.
    if (route.speaks === 'json-rpc') row.methods = row.methods.filter((method) => method !== 'HEAD');
  }
  const app: KoaApp = new Koa();
  for (const middleware of first) app.use(middleware);
  if (table.besides !== undefined) app.use(table.besides);
  app.use(router.routes());
  app.use(table.unmatched(router));
  return appListener(app, log, plainCalls(plain), ARRIVALS);
}

/**
 * The listener of the requests of an app. Unlike app.callback() it has no listeners for the end of the connection (1.5 us per
 * request), and neither koa's lines on standard error nor its answers: respond.ts and sse/ write every reply. The first
 * middleware handles the errors of the others. `callOf`: requests that are served without koa. Default: none. `arrivals`: where
 * the requests of clients are published.
 */
export function appListener(
  app: KoaApp,
  log: Pick<Logger, 'error'>,
  callOf: ReturnType<typeof plainCalls> = () => undefined,
  arrivals?: typeof ARRIVALS,
): AppListener {
  const run = compose<KoaContext>(app.middleware);
  return (request, response, caller) => {
    // A forwarded request is published by the node that has its client.
    if (caller === undefined && arrivals?.hasSubscribers) arrivals.publish({ request, response });
    const call = callOf(request);
    try {
      if (call !== undefined) {
        void call.serve(new PlainContext(app, request, response, call.pathName, caller), nothing);
        return;
      }
      const context = app.createContext<RequestState>(request, response);
      if (caller !== undefined) context.state.forwarded = caller;
      void run(context, nothing);
    } catch (thrown) {
      log.error({ err: thrown }, 'request failed');
      response.destroy();
    }
  };
}

/** `next` of the last middleware, which does not call it. */
async function nothing(): Promise<void> {}

/** The middleware of a route, skipped while a template of this name exists. */
function unlessTemplate<C>(
  { unlessTemplate: template }: HttpRoute,
  gateway: Pick<Gateway, 'hasTemplate' | 'views'>,
  serve: HttpMiddleware<C>,
): HttpMiddleware<C> {
  if (template === undefined) return serve;
  return (context, next) =>
    gateway.hasTemplate(template) || gateway.views.has(template) ? next() : serve(context, next);
}

/**
 * Composes middleware into one that runs it in order, then `next`. koa-compose creates a bound function and a promise for each
 * one and each request, to detect a second call of `next`, which is never made here: one function for all middleware of a
 * request counts them. Middleware may throw synchronously: middleware that catches errors uses `await`, or `guarded`.
 */
function compose<C>(all: readonly HttpMiddleware<C>[]): HttpMiddleware<C> {
  return (context, next) => {
    let begun = 0;
    const run: typeof next = () => {
      const middleware = all[begun];
      begun += 1;
      return middleware === undefined ? next() : middleware(context, run);
    };
    return run();
  };
}
