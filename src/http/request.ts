// A request: the state that middlewares share, and the interface for handlers (HttpRequest). Handlers do not get koa's
// context: they get a RouteInput (route.ts) and return a Reply (replies/reply.ts).

import type { IncomingHttpHeaders } from 'node:http';
import type { Middleware, Next, ParameterizedContext } from 'koa';
import type { Credentials } from '../auth/credentials.ts';
import type { RateLimiter } from '../auth/limits/rate-limiter.ts';
import type { Principal } from '../domain/accounts/account.ts';
import type { ToolRights } from '../domain/accounts/rights.ts';
import type { ErrorCode, GatewayError } from '../domain/errors/errors.ts';
import { originNotAllowed } from '../domain/errors/request-errors.ts';
import type { JsonFields } from '../domain/json/json.ts';
import { EVENT_STREAM_TYPE, MCP_ACCEPT } from '../domain/mcp/media-types.ts';
import type { ForwardedCaller } from '../domain/nodes/forwarding.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { McpLog } from '../protocol/endpoint-types.ts';
import type { RequestSpan } from '../tracing/spans.ts';
import type { HeldBody } from './body/held-bodies.ts';
import { type CallerCheck, type CountedRequest, consumeRateLimit } from './callers/caller-check.ts';
import { credentialsOf, hasConsoleHeader, isOwnHost } from './callers/caller-credentials.ts';
import type { OpenRequest, OpenRequests } from './callers/open-requests.ts';
import { HOST, type Proxies } from './callers/proxies.ts';
import { atClose, ClientGone } from './client-gone.ts';
import { HTTP_LIMITS } from './http-limits.ts';
import { HttpCallReport, type ReportedRequest } from './replies/http-call-report.ts';

/**
 * What is known of a request so far. Has the fields that calls set from the start, since V8 would copy a growing object several
 * times; only other requests set those that are declared.
 */
export class RequestState implements CountedRequest, McpLog {
  principal?: Principal;
  rateLimit?: CountedRequest['rateLimit'];
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
  /** Counted memory of a large body; see body/held-bodies.ts. */
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
  whenClosed?: () => void;
  /** True once the log line of the request is written: a call that continues gets a second line at its end. */
  declare isLogged?: boolean;
}

/** The header `WWW-Authenticate` for an answer with this error; undefined without one, and for that of every 401. */
export type Challenge = (context: HttpContext, error: GatewayError) => string | undefined;

export interface Trail {
  readonly actor?: Pick<Principal, 'id' | 'name' | 'client'>;
  /** Path of the created resource, or a description of the change. */
  readonly subject?: string;
}

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

/** The options that all requests of an app share. */
export interface HttpRequestOptions {
  readonly clock: Clock;
  readonly proxies: Proxies;
  readonly open: OpenRequests;
  readonly onReport: ReportListener;
}

/** The parts of a request that a handler may use besides its input. Computed on demand, because hot routes need few of them. */
export class HttpRequest {
  readonly #context: HttpContext;
  readonly #options: HttpRequestOptions;
  #leaving: AbortController | undefined;

  constructor(context: HttpContext, options: HttpRequestOptions) {
    this.#context = context;
    this.#options = options;
  }

  get id(): string {
    return this.#context.state.requestId;
  }

  /** Id of the principal; undefined before authentication. */
  get callerId(): string | undefined {
    return this.#context.state.principal?.id;
  }

  /** The tools that it may call; undefined for all. */
  get callerTools(): ToolRights | undefined {
    return this.#context.state.principal?.tools;
  }

  get isHead(): boolean {
    return this.#context.req.method === 'HEAD';
  }

  /** Address of the client; undefined when the socket is closed. */
  get address(): string | undefined {
    const { req, state } = this.#context;
    return state.forwarded === undefined ? this.#options.proxies.address(req) : state.forwarded.address;
  }

  /** True when another node has the client. */
  get isForwarded(): boolean {
    return this.#context.state.forwarded !== undefined;
  }

  /** This end of the connection; undefined when the socket is closed. */
  get ownEndpoint(): { readonly address: string; readonly port: number } | undefined {
    const { localAddress: address, localPort: port } = this.#context.req.socket;
    return address === undefined || port === undefined ? undefined : { address, port };
  }

  /** True when the caller runs on this machine and the request passed no untrusted proxy. */
  get isLocal(): boolean {
    return this.#options.proxies.isLocal(this.#context.req);
  }

  get isSecure(): boolean {
    return this.#options.proxies.scheme(this.#context.req) === 'https';
  }

  /** The URL of this gateway as the client reached it, without a path. It contains no characters that are special in a shell. */
  get gatewayUrl(): string {
    const { req } = this.#context;
    const host = this.#options.proxies.host(req) ?? '';
    const scheme = this.#options.proxies.scheme(req) === 'https' ? 'https' : 'http';
    return `${scheme}://${HOST.test(host) ? host : 'localhost'}`;
  }

  /** The Host of the request, as a trusted proxy got it. */
  get host(): string | undefined {
    return this.#options.proxies.host(this.#context.req);
  }

  /** True for a request of the console. Throws ORIGIN_NOT_ALLOWED when the console was opened on another host. */
  get isConsole(): boolean {
    if (!hasConsoleHeader(this.#context)) return false;
    if (isOwnHost(this.#context)) return true;
    throw originNotAllowed(
      'The console was opened under another host name than the gateway received. Behind a proxy, see trusted_proxies.',
    );
  }

  get credentials(): Credentials {
    return credentialsOf(this.#context);
  }

  /** Never forward them unchanged: they include credentials. */
  get headers(): IncomingHttpHeaders {
    return this.#context.req.headers;
  }

  get path(): string {
    return this.#context.path;
  }

  /** Path and query. */
  get target(): string {
    const { path, querystring } = this.#context;
    return querystring === '' ? path : `${path}?${querystring}`;
  }

  /** True when the client prefers server-sent events to JSON; of equal weights the first type wins. */
  get wantsEventStream(): boolean {
    const { accept } = this.#context.req.headers;
    // To negotiate MCP_ACCEPT would take 2 us of each call.
    if (accept === undefined || accept === MCP_ACCEPT || !accept.includes(EVENT_STREAM_TYPE)) return false;
    return this.#prefers(EVENT_STREAM_TYPE);
  }

  /** True when the client prefers HTML to JSON, as browsers do. */
  get wantsPage(): boolean {
    return this.#prefers('text/html');
  }

  get acceptsGzip(): boolean {
    return this.#context.acceptsEncodings('gzip') !== false;
  }

  report(request: ReportedRequest): HttpCallReport {
    const { state } = this.#context;
    const onEnded = (report: HttpCallReport): void => {
      this.#options.onReport(report, this.#context);
      state.reportEnded?.();
    };
    // The requests of a batch share one span, which has no method.
    state.trace?.begin(state.rpcMessages === undefined ? request : undefined);
    // The address is read early, because a closed connection has none.
    state.report = new HttpCallReport(request, onEnded, this.#options.clock.now(), this.address, state.trace);
    return state.report;
  }

  /** Counts the HTTP request as this many requests of the caller; see caller-check.ts. */
  consume(limiter: RateLimiter, count: number): void | Promise<void> {
    return consumeRateLimit(this.#context.state, limiter, count);
  }

  /**
   * Keeps the memory of the body counted until the returned function is called, also after the response. Undefined
   * for a small body.
   */
  get holdBody(): (() => () => void) | undefined {
    const { heldBody } = this.#context.state;
    return heldBody && (() => heldBody.keep());
  }

  /** Aborts with the reason of `onLost`. Created on first use. */
  get signal(): AbortSignal {
    if (this.#leaving === undefined) {
      const leaving = new AbortController();
      this.#leaving = leaving;
      this.onLost((reason) => leaving.abort(reason));
    }
    return this.#leaving.signal;
  }

  /** True when the client prefers this media type to JSON. A long header is not read: the negotiator takes quadratic time. */
  #prefers(type: string): boolean {
    const { accept = '' } = this.#context.req.headers;
    return (
      accept.length <= HTTP_LIMITS.acceptCharacters &&
      this.#context.accepts('application/json', type) === type
    );
  }

  /**
   * Calls `listener` before the answer is complete: with ClientGone when the client disconnects, with the refusal when its caller
   * may no longer make the request or use the template or view that `pathName` names. Cheaper than `signal`. Default: the name in
   * the path.
   */
  onLost(listener: (reason: Error) => void, pathName = this.#context.state.pathName): void {
    const { res: response } = this.#context;
    const request: OpenRequest = { context: this.#context, pathName, end: listener };
    const close = (): void => {
      this.#options.open.delete(request);
      if (!response.writableFinished) listener(new ClientGone());
    };
    if (response.destroyed) {
      close();
      return;
    }
    this.#options.open.add(request);
    atClose(this.#context, close);
  }
}
