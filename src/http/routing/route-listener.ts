// Makes the listener of a table of routes: calls by a look-up, all other requests by koa and its router. The steps
// are the same on both ways.

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Router as KoaRouter } from '@koa/router';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { ForwardedCaller } from '../../domain/nodes/forwarding.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { BodyReaders } from '../body/readers.ts';
import type { HttpMiddleware, HttpStep, KoaContext, RequestState, RouteContext } from '../request.ts';
import { PlainContext, plainCalls } from './plain-call.ts';
import type { Route } from './route.ts';

/** The CommonJS form of the router: its ES modules import node:http; see server/listeners.ts. */
const { Router }: typeof import('@koa/router') = createRequire(import.meta.url)('@koa/router');

/** Diagnostics channel: every request to the routes of any app of the process, published before the answer. */
const ARRIVALS = channel('stagedoor:request');

type KoaApp = Koa<RequestState, Record<never, never>>;

/** `caller`: of a request that another node forwarded. */
export type AppListener = (
  request: IncomingMessage,
  response: ServerResponse,
  caller?: ForwardedCaller,
) => void;

/** Routes, and the steps of their requests. */
export interface RouteTable {
  readonly routes: readonly Route[];
  /** Steps of every request, in the order of their execution. */
  readonly first: readonly HttpMiddleware[];
  /** The steps of a route after them; `readBody` comes after its authorization. */
  stepsOf<C extends RouteContext>(route: Route, readBody: readonly HttpStep<C>[]): readonly HttpStep<C>[];
  /** Serves requests besides those of routes. Default: there are none. */
  readonly besides?: HttpMiddleware | undefined;
  /** Answers a request without a route. */
  unmatched(router: Pick<KoaRouter, 'match'>): HttpMiddleware;
}

/** Compiles the steps of each route once. The errors of steps are answered by the first of them (middleware/errors.ts). */
export function routeListener(
  table: RouteTable,
  readers: BodyReaders,
  gateway: Pick<Gateway, 'hasTemplate' | 'views'>,
  log: Pick<Logger, 'error'>,
): AppListener {
  const { routes, first, stepsOf } = table;
  const plain = routes.flatMap((route) => {
    const readBody = route.unlessTemplate === undefined ? readers.direct(route) : undefined;
    if (readBody === undefined) return [];
    return [{ route, steps: compose<RouteContext>([...first, ...stepsOf(route, readBody)]) }];
  });
  const router = new Router<RequestState, Record<never, never>>({ sensitive: true });
  for (const route of routes) {
    const steps = compose<KoaContext & RouteContext>(stepsOf(route, readers.of(route)));
    const row = router.register(route.path, [route.method], unlessTemplate(route, gateway, steps));
    // The router adds HEAD to every GET; at the MCP endpoint it would open a stream that is never read.
    if (route.speaks === 'json-rpc') row.methods = row.methods.filter((method) => method !== 'HEAD');
  }
  const app: KoaApp = new Koa();
  for (const step of first) app.use(step);
  if (table.besides !== undefined) app.use(table.besides);
  app.use(router.routes());
  app.use(table.unmatched(router));
  return appListener(app, log, plainCalls(plain), ARRIVALS);
}

/**
 * Like app.callback(), but without listeners for the end of the connection (1.5 us per request), without koa's lines on standard
 * error and its answers: respond.ts and sse/ write every reply. The first step handles what those after it reject with.
 * `callOf`: requests that are served without koa. Default: none. `arrivals`: where the requests of clients are published.
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
        void call.steps(new PlainContext(app, request, response, call.pathName, caller), nothing);
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

/** `next` of the last step, which does not call it. */
async function nothing(): Promise<void> {}

/** The steps of a route, skipped while a template of this name exists. */
function unlessTemplate<C>(
  { unlessTemplate: template }: Route,
  gateway: Pick<Gateway, 'hasTemplate' | 'views'>,
  steps: HttpStep<C>,
): HttpStep<C> {
  if (template === undefined) return steps;
  return (context, next) =>
    gateway.hasTemplate(template) || gateway.views.has(template) ? next() : steps(context, next);
}

/**
 * Composes steps: they run in order, then `next`. koa-compose creates a bound function and a promise for each step
 * of each request, to detect a second call of `next`, which no step here makes: one function for all steps of a
 * request counts them. A step may throw synchronously: steps that catch errors use `await`, or `guarded`.
 */
function compose<C>(steps: readonly HttpStep<C>[]): HttpStep<C> {
  return (context, next) => {
    let begun = 0;
    const run: typeof next = () => {
      const step = steps[begun];
      begun += 1;
      return step === undefined ? next() : step(context, run);
    };
    return run();
  };
}
