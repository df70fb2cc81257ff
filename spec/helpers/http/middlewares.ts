// A server with a few middlewares on a real port, for the specs of single ones; it adds request ids and error answers.

import { Router } from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { pino } from 'pino';
import { BodyRequest } from '../../../src/http/body/body-request.ts';
import type { RequestState, RouteMiddleware } from '../../../src/http/context.ts';
import { errors } from '../../../src/http/middleware/error-answers.ts';
import { startRawServer } from '../../transports/raw-server.ts';
import { type Answer, type Ask, send } from './app.ts';

/** A running server. */
export interface MiddlewareFixture {
  readonly port: number;
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  close(): Promise<void>;
}

/** Serves request ids, error answers, and then these. */
export async function startMiddlewares(
  ...middlewares: readonly Middleware<RequestState, Record<never, never>>[]
): Promise<MiddlewareFixture> {
  return startKoa((koa) => {
    for (const middleware of middlewares) koa.use(middleware);
  });
}

/** Serves request ids, error answers, and one route. */
export function startRoute(
  path: string,
  ...middleware: readonly RouteMiddleware[]
): Promise<MiddlewareFixture> {
  const router = new Router<RequestState, Record<never, never>>();
  router.register(path, ['GET', 'POST', 'DELETE'], [...middleware]);
  return startKoa((koa) => koa.use(router.routes()));
}

async function startKoa(
  furnish: (koa: Koa<RequestState, Record<never, never>>) => void,
): Promise<MiddlewareFixture> {
  const koa = new Koa<RequestState, Record<never, never>>();
  // The clients of these specs abort requests on purpose.
  koa.silent = true;
  koa.use((context, next) => {
    context.respond = false; // as in src/http/app.ts
    return next();
  });
  koa.use(errors(pino({ level: 'silent' })));
  furnish(koa);
  const { port, close } = await startRawServer(koa.callback(), 0, { IncomingMessage: BodyRequest });
  return {
    port,
    ask: (method, path, ask) => send(method, `http://127.0.0.1:${port}${path}`, ask),
    close,
  };
}
