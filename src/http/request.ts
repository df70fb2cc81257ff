// A request: the state that middlewares pass along, what a handler may read of it (HttpRequest), and the end of its client.
// Handlers never see the context of koa: they get a RouteInput (route.ts) and return a Reply (reply.ts).

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Middleware, ParameterizedContext } from 'koa';
import type { Credentials, RateLimiter } from '../auth/auth.ts';
import type { Principal } from '../domain/account.ts';
import { originNotAllowed } from '../domain/error-catalogue.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { JsonFields } from '../domain/json.ts';
import type { RequestSpan } from '../tracing/spans.ts';
import type { HeldBody } from './body/held-bodies.ts';
import { HttpCallReport, type Reported } from './call-report.ts';
import type { CallerCheck } from './caller-check.ts';
import { credentialsOf, isOwnHost, saysConsole } from './credentials.ts';
import type { Proxies } from './proxies.ts';
import { type CountedRequest, consumeRateLimitUpTo } from './rate-limit.ts';

/** Set by the middlewares, read by the log line and the error body. */
export interface RequestState extends CountedRequest {
  /** Set by middleware/request-id.ts, the first one. */
  requestId: string;
  /** Whether the caller is still authorized; set by middleware/authorize.ts on routes that need credentials. */
  check?: CallerCheck;
  /** The answer is for this caller only; set by middleware/authorize.ts on routes that need credentials. */
  isPrivate?: boolean;
  /** The answer names the origin that may read it; set by middleware/host-origin-check.ts. */
  variesByOrigin?: boolean;
  /** The host of the `Origin` is that of the request; set by middleware/host-origin-check.ts when there is an `Origin`. */
  isSameHost?: boolean;
  /** Memory of its body, unless the body is small; see body/held-bodies.ts. */
  heldBody?: HeldBody;
  /** Details of a successful answer for the audit log; set by the step that runs the route. */
  trail?: Trail;
  /** The parsed body; set by middleware/body.ts on routes that take one. */
  body?: unknown;
  /** The fields of the body, as text where they are forwarded; set by middleware/body.ts. */
  bodyFields?: JsonFields | undefined;
  /** Template of the path, once a route matched. */
  template?: string | undefined;
  /** The instance that answered. */
  instanceId?: string;
  /** Error code of the gateway; absent for errors of backends. */
  errorCode?: ErrorCode;
  /** For the log line of a request to the MCP endpoint; set by mcp-reply.ts and middleware/errors.ts. */
  rpcMethod?: string;
  rpcMessages?: number;
  rpcError?: number;
  /** A credential. Only its fingerprint is logged. */
  sessionId?: string;
  /** The MCP request that came with it; of a batch the latest one. */
  report?: HttpCallReport;
  /** The pattern of its path, once a route matched. */
  route?: string;
  /** Its span, while the process traces. */
  trace?: RequestSpan;
  /** Ends its span, which waits for the end of the report. */
  reportEnded?: () => void;
  /** Its line is written: a request that goes on gets a line of its own at its end. */
  isLogged?: boolean;
}

/** What only the handler knows of an audited request. */
export interface Trail {
  /** The user that logged in. */
  readonly actor?: Pick<Principal, 'id' | 'name'>;
  /** Path of the created resource, or what was changed. */
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

/** How the body of an answer may be encoded. */
export type ContentEncoding = 'br' | 'gzip' | 'identity';
/** Called at the end of each MCP request, which may be after the end of its HTTP request. */
export type ReportListener = (report: HttpCallReport, context: HttpContext) => void;

/** What a handler may read of a request besides its input. Everything is computed on demand: the hot path needs little of it. */
export class HttpRequest {
  readonly #context: HttpContext;
  readonly #proxies: Proxies;
  readonly #onReport: ReportListener | undefined;
  #leaving: AbortController | undefined;

  constructor(context: HttpContext, proxies: Proxies, onReport?: ReportListener) {
    this.#context = context;
    this.#proxies = proxies;
    this.#onReport = onReport;
  }

  /** The value of `X-Request-ID`. */
  get id(): string {
    return this.#context.state.requestId;
  }

  /** Id of the principal; undefined before authentication. */
  get callerId(): string | undefined {
    return this.#context.state.principal?.id;
  }

  /** True for HEAD: the answer has no body. */
  get isHead(): boolean {
    return this.#context.req.method === 'HEAD';
  }

  /** Address of the client; undefined when the socket is gone. */
  get address(): string | undefined {
    return this.#proxies.address(this.#context.req);
  }

  /** True when the caller runs on this machine and the request passed no untrusted proxy. */
  get isLocal(): boolean {
    return this.#proxies.isLocal(this.#context.req);
  }

  /** True when the client sent the request over TLS. */
  get isSecure(): boolean {
    return this.#proxies.scheme(this.#context.req) === 'https';
  }

  /** The address of this gateway as the client reached it, without a path. It is safe in a shell. */
  get gatewayUrl(): string {
    const { req } = this.#context;
    const host = this.#proxies.host(req) ?? '';
    const scheme = this.#proxies.scheme(req) === 'https' ? 'https' : 'http';
    return `${scheme}://${HOST.test(host) ? host : 'localhost'}`;
  }

  /** True for a request of the console. ORIGIN_NOT_ALLOWED when it says so and comes from another host. */
  get isConsole(): boolean {
    if (!saysConsole(this.#context)) return false;
    if (isOwnHost(this.#context)) return true;
    throw originNotAllowed(
      'The console was opened by another host name than the gateway got. Behind a proxy, see trusted_proxies.',
    );
  }

  /** For the end of a session. */
  get credentials(): Credentials {
    return credentialsOf(this.#context);
  }

  /** All headers, credentials included: never forward them as they are. */
  get headers(): IncomingHttpHeaders {
    return this.#context.req.headers;
  }

  /** The `Origin` header: only browsers send it. */
  get origin(): string | undefined {
    return this.#context.req.headers.origin;
  }

  /** The path of the request, without the query. */
  get path(): string {
    return this.#context.path;
  }

  /** True when the client prefers server-sent events to JSON; of equal weights the first one counts. */
  get wantsEventStream(): boolean {
    const { accept } = this.#context.req.headers;
    if (accept === undefined) return false;
    const stream = accept.indexOf('text/event-stream');
    if (stream === -1) return false;
    // MCP clients accept both, JSON first, on every call: decided here without the negotiator.
    if (!accept.includes(';')) return accept.lastIndexOf('application/json', stream) === -1;
    return this.#context.accepts('application/json', 'text/event-stream') === 'text/event-stream';
  }

  /** True when the client prefers a page to JSON: browsers do. */
  get wantsPage(): boolean {
    return this.#context.accepts('application/json', 'text/html') === 'text/html';
  }

  /** The smallest encoding that the client accepts, by `Accept-Encoding`. */
  get encoding(): ContentEncoding {
    return ENCODINGS.find((encoding) => this.#context.acceptsEncodings(encoding) !== false) ?? 'identity';
  }

  /** Opens the report of an MCP request. */
  report(request: Reported): HttpCallReport {
    const { state } = this.#context;
    const onEnded = (report: HttpCallReport): void => {
      this.#onReport?.(report, this.#context);
      state.reportEnded?.();
    };
    // The requests of a batch are below one span, which has no method.
    state.trace?.begin(state.rpcMessages === undefined ? request : undefined);
    // Read now: a connection that is gone has no address.
    state.report = new HttpCallReport({ ...request, address: this.address }, onEnded, state.trace);
    return state.report;
  }

  /** Counts the HTTP request as this many requests of the caller, where authorize.ts did not; see rate-limit.ts. */
  consume(limiter: RateLimiter, count: number): void | Promise<void> {
    return consumeRateLimitUpTo(this.#context.state, limiter, count);
  }

  /** Keeps the memory of the body counted, also after the response, until the returned function is called. Undefined for a small body. */
  get holdBody(): (() => () => void) | undefined {
    const { heldBody } = this.#context.state;
    return heldBody && (() => heldBody.keep());
  }

  /** Aborts when the client disconnects before the answer is complete. Created on first use. */
  get signal(): AbortSignal {
    if (this.#leaving === undefined) {
      const leaving = new AbortController();
      this.#leaving = leaving;
      this.onGone(() => leaving.abort());
    }
    return this.#leaving.signal;
  }

  /** Calls back when the client disconnects before the answer is complete; cheaper than `signal`. */
  onGone(listener: () => void): void {
    whenGone(this.#context.res, listener);
  }
}

/** Names, addresses and ports. */
const HOST = /^[A-Za-z0-9._:[\]-]{1,300}$/;
const ENCODINGS = ['br', 'gzip'] as const satisfies readonly ContentEncoding[];

/** Keeps the first error of a JSON-RPC request for its log line, with the error code of the gateway if there is one. */
export function noteFailure(state: RequestState, rpcError: number, errorCode: ErrorCode | undefined): void {
  if (state.rpcError !== undefined) return;
  state.rpcError = rpcError;
  if (errorCode !== undefined) state.errorCode = errorCode;
}

/** Thrown when the client disconnects before its request was read or answered: never answered, never logged as an error. */
export class ClientGone extends Error {
  constructor() {
    super('The client disconnected.');
    this.name = 'ClientGone';
  }
}

/** Status in the logs for a client that disconnects before its answer begins, as in nginx. The request may have been executed. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Calls back when the client disconnects before the answer is complete; at once if it already has. */
export function whenGone(response: ServerResponse, listener: () => void): void {
  if (response.closed) {
    if (!response.writableFinished) listener();
    return;
  }
  // It comes once; `once` would make two more functions for each request.
  response.on('close', () => {
    if (!response.writableFinished) listener();
  });
}
