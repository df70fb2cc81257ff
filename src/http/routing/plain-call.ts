// Calls without koa: finds the route of a POST to a template by a look-up, and serves it with a context that has only the fields
// that its middleware uses. The middleware is that of all other requests, which koa and its router take. Source: ADR 137.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ForwardedCaller } from '../../domain/nodes/forwarding.ts';
import { TEMPLATE_NAME } from '../../domain/template-name.ts';
import type { KoaApp } from '../context.ts';
import { type HttpContext, RequestState, type RouteContext, type RouteMiddleware } from '../context.ts';
import type { HttpRoute } from './route.ts';

/**
 * Makes the look-up, which gives the middleware that serves a request, and the name in its path; undefined for all requests but a
 * POST to a template whose path has no query and no escapes. The router compares a path with all of its rows and composes the
 * middleware of each request (2 us).
 */
export function plainCalls(
  routes: readonly { readonly route: Pick<HttpRoute, 'method' | 'path'>; readonly serve: RouteMiddleware }[],
): (request: IncomingMessage) => { readonly serve: RouteMiddleware; readonly pathName: string } | undefined {
  const posts = routes.filter(
    ({ route: { method, path } }) => method === 'POST' && path.startsWith(OF_TEMPLATE),
  );
  const byRest = new Map(posts.map(({ route, serve }) => [route.path.slice(OF_TEMPLATE.length), serve]));
  return ({ method, url = '' }) => {
    const [, pathName = '', rest = ''] = (method === 'POST' && PLAIN_PATH.exec(url)) || [];
    const serve = pathName === '' ? undefined : byRest.get(rest);
    return serve === undefined ? undefined : { serve, pathName };
  };
}

const OF_TEMPLATE = '/mcp/:template';
const PLAIN_PATH = new RegExp(`^/mcp/(${TEMPLATE_NAME})(/[a-z/]+)?$`);

/** The context of a call. Negotiation, which most calls do not need, is koa's. */
export class PlainContext implements RouteContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly params: Readonly<Record<string, string>>;
  readonly state = new RequestState();
  readonly method = 'POST';
  readonly querystring = '';
  readonly #app: KoaApp;

  constructor(
    app: KoaApp,
    request: IncomingMessage,
    response: ServerResponse,
    pathName: string,
    caller: ForwardedCaller | undefined,
  ) {
    if (caller !== undefined) this.state.forwarded = caller;
    this.#app = app;
    this.req = request;
    this.res = response;
    this.params = { template: pathName };
  }

  get path(): string {
    return this.req.url ?? '';
  }

  get accepts(): HttpContext['accepts'] {
    const { request } = this.#app.createContext(this.req, this.res);
    return request.accepts.bind(request);
  }

  get acceptsEncodings(): HttpContext['acceptsEncodings'] {
    const { request } = this.#app.createContext(this.req, this.res);
    return request.acceptsEncodings.bind(request);
  }
}
