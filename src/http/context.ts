// What the middlewares of this room pass along with a request. Handlers of routes never see it: they get a
// RouteInput (route.ts) and give back a Reply (reply.ts).

import type { Middleware, ParameterizedContext } from 'koa';
import type { RateLimit } from '../auth/auth.ts';
import type { Principal } from '../domain/account.ts';
import type { ErrorCode } from '../domain/error-codes.ts';
import type { JsonFields } from '../domain/json.ts';
import type { HeldBody } from './body/held-bodies.ts';
import type { CallerCheck } from './caller-check.ts';

/** Set on the way in, read by the log line and the error body. */
export interface RequestState {
  /** Set by middleware/request-id.ts, the first of the list. */
  requestId: string;
  /** Who asks; set by middleware/admit.ts on every matched route, absent while nobody is known. */
  principal?: Principal;
  /** Whether they still may; set by middleware/admit.ts where somebody is asked who they are. */
  check?: CallerCheck;
  /** The answer is for this caller alone; set by middleware/admit.ts where somebody is asked who they are. */
  isPrivate?: boolean;
  /** The answer names the origin that it may be read by; set by middleware/guard.ts. */
  variesByOrigin?: boolean;
  /** Their window, when they have one; set by middleware/admit.ts, written with the headers of every answer. */
  rateLimit?: RateLimit;
  /** Requests that were counted for it so far; see rate-limit.ts. */
  charged?: number;
  /** What is counted of the memory of its body, unless it is small; see body/held-bodies.ts. */
  heldBody?: HeldBody;
  /** What a successful answer says for the audit log; set by middleware/handle.ts. */
  trail?: Trail;
  /** The parsed body; set by middleware/body.ts on routes that take one. */
  body?: unknown;
  /** The fields of the body, as text where they are passed on; set by middleware/body.ts. */
  bodyFields?: JsonFields | undefined;
  /** Template of the path, once a route matched. */
  template?: string | undefined;
  /** Who answered, once an instance did. */
  instanceId?: string;
  /** Why it was refused or failed, if the gateway says so: errors that backends answer have none. */
  errorCode?: ErrorCode;
  /** What was said to the MCP endpoint, as far as a log may know it; set by mcp-reply.ts and middleware/rpc-errors.ts. */
  rpcMethod?: string;
  rpcMessages?: number;
  rpcError?: number;
  /** A credential. Only its fingerprint is logged. */
  sessionId?: string;
}

/** What only the handler knows of a request that is recorded. */
export interface Trail {
  /** Who it turned out to be, when that was the question. */
  readonly actor?: Pick<Principal, 'id' | 'name'>;
  /** Path of what was made. */
  readonly subject?: string;
}

type Nothing = Record<never, never>;

export type HttpContext = ParameterizedContext<RequestState, Nothing>;
export type HttpMiddleware = Middleware<RequestState, Nothing>;

/** Behind the router: `params` are the decoded names of the path. */
interface Matched {
  readonly params: Readonly<Record<string, string>>;
}

export type RouteContext = ParameterizedContext<RequestState, Matched>;
export type RouteMiddleware = Middleware<RequestState, Matched>;
