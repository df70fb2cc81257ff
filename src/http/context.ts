// What the middlewares of this room pass along with a request. Handlers of routes never see it: they get a
// RouteInput (route.ts) and give back a Reply (reply.ts).

import type { Middleware, ParameterizedContext } from 'koa';

/** Set on the way in, read by the log line and the error body. */
export interface RequestState {
  /** Set by middleware/request-id.ts, the first of the list. */
  requestId: string;
  /** The parsed JSON body; set by middleware/body.ts on routes that take one. */
  body?: unknown;
  /** Template of the path, once a route matched. */
  template?: string | undefined;
  /** Who answered, once an instance did. */
  instanceId?: string;
}

type Nothing = Record<never, never>;

export type HttpContext = ParameterizedContext<RequestState, Nothing>;
export type HttpMiddleware = Middleware<RequestState, Nothing>;

/** A middleware behind the router: `params` are the decoded names of the path. */
export type RouteMiddleware = Middleware<RequestState, { readonly params: Readonly<Record<string, string>> }>;
