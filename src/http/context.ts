// What the parts of the app know of a request: its state, which middlewares share, the types of its context and of middleware.

import type Koa from 'koa';
import type { Middleware, Next, ParameterizedContext } from 'koa';
import type { RateLimit } from '../auth/limits/rate-limiter.ts';
import type { Principal } from '../domain/accounts/principal.ts';
import type { ErrorCode, GatewayError } from '../domain/errors/errors.ts';
import type { JsonFields } from '../domain/json/json.ts';
import type { ForwardedCaller } from '../domain/nodes/forwarding.ts';
import type { McpLog } from '../protocol/endpoint-types.ts';
import type { RequestSpan } from '../tracing/spans.ts';
import type { HeldBody } from './body/held-bodies.ts';
import type { HttpCallReport } from './replies/http-call-report.ts';

/**
 * What is known of a request so far. Has the fields that calls set from the start, since V8 would copy a growing object several
 * times; only other requests set those that are declared.
 */
export class RequestState implements McpLog {
  /** The caller; set by middleware/authorize.ts on routes that need credentials. */
  principal?: Principal;
  /** The window of a caller with a limit; written to the headers of every answer. */
  rateLimit?: RateLimit | undefined;
  /** The requests of the caller as which this one has been counted so far. */
  counted?: number;
  instanceId?: string;
  rpcMethod?: string;
  errorCode?: ErrorCode;
  declare rpcMessages?: number;
  declare rpcError?: number;
  declare sessionId?: string;
  requestId = '';
  /** The client of a request that another node forwarded. */
  declare forwarded?: ForwardedCaller;
  /** The node that answers. */
  declare forwardedTo?: string;
  /** Authorizes the caller again; set by middleware/authorize.ts on routes that need credentials. */
  check?: CallerCheck;
  /** Makes `WWW-Authenticate` of a 401 or 403; set by middleware/authorize.ts where MCP clients can sign in. */
  challenge?: Challenge;
  /** True when the answer is for this caller only; set on routes that need credentials, and with the rate limit of a caller elsewhere. */
  isPrivate?: boolean;
  /** True when the answer names the origin that may read it; set by middleware/host-origin-check.ts. */
  declare variesByOrigin?: boolean;
  /** True when the `Origin` has the host of the request; set by middleware/host-origin-check.ts when there is an `Origin`. */
  declare isSameHost?: boolean;
  /** The counted memory of a large body; see body/held-bodies.ts. */
  declare heldBody?: HeldBody;
  /** Details of a successful answer for the audit log; set by replies/write-reply.ts. */
  declare trail?: Trail;
  /** The parsed body; set by middleware/body.ts on routes that take one. */
  body?: unknown;
  /** The fields of the body, as text where they are forwarded; set by middleware/body.ts. */
  bodyFields?: JsonFields | undefined;
  /** The name in the path, of a template or a view; set by routing/handle.ts. */
  pathName?: string | undefined;
  /** Report of the MCP request; for a batch, of its latest request. */
  report?: HttpCallReport;
  route?: string;
  declare trace?: RequestSpan;
  /** Ends the span, which stays open until the report ends. */
  declare reportEnded?: () => void;
  /**
   * True once middleware/access-log.ts observes the request: it calls `whenClosed` after the end of the answer or of the
   * connection.
   */
  isObserved?: boolean;
  whenClosed?: (() => void) | undefined;
  /** True once the log line of the request is written: a call that continues gets a second line at its end. */
  declare isLogged?: boolean;
}

/**
 * Authorizes the caller of a request again, and gives the error for one that is not authorized any more. Never throws or
 * rejects; without a promise when its credentials are cached.
 */
export type CallerCheck = (
  context: Pick<HttpContext, 'req' | 'state'>,
) => GatewayError | undefined | Promise<GatewayError | undefined>;

/** The header `WWW-Authenticate` for an answer with this error; undefined without one, and for that of every 401. */
export type Challenge = (context: HttpContext, error: GatewayError) => string | undefined;

export interface Trail {
  readonly actor?: Pick<Principal, 'id' | 'name' | 'client'>;
  /** Path of the created resource, or a description of the change. */
  readonly subject?: string;
}

/** An app of koa, whose requests have this state. */
export type KoaApp = Koa<RequestState, Record<never, never>>;

/** The context of a request that koa serves. */
export type KoaContext = ParameterizedContext<RequestState, Record<never, never>>;

/** The part of a request that middleware and handlers use. Calls have no context of koa, but a PlainContext. */
export type HttpContext = Pick<
  KoaContext,
  'req' | 'res' | 'state' | 'method' | 'path' | 'querystring' | 'accepts' | 'acceptsEncodings'
>;

/** A request whose route is known. */
export interface RouteContext extends HttpContext {
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Middleware of requests; `next` runs the middleware after it. Both return a promise only if something waits, whatever
 * koa's types say, and throw or reject with the error of the answer. By default the route is not known yet.
 */
export type HttpMiddleware<C = HttpContext> = (context: C, next: Next) => ReturnType<Middleware>;
export type RouteMiddleware = HttpMiddleware<RouteContext>;

/** The template that a request is for: that of its call, where the name in its path is that of a view. */
export function templateIn(
  { pathName }: Pick<RequestState, 'pathName'>,
  report: HttpCallReport | undefined,
): string | undefined {
  return report?.view === undefined ? (pathName ?? report?.template) : report.template;
}

/** Called at the end of each MCP request, which may be later than the end of its HTTP request. */
export type ReportListener = (report: HttpCallReport, context: HttpContext) => void;
