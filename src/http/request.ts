// A request as handlers see it. They do not get its context (context.ts): they get a RouteInput (route.ts) and return a Reply
// (replies/reply.ts).

import type { IncomingHttpHeaders } from 'node:http';
import type { Credentials } from '../auth/credentials.ts';
import type { RateLimiter } from '../auth/limits/rate-limiter.ts';
import type { ToolRights } from '../domain/accounts/rights.ts';
import { originNotAllowed } from '../domain/errors/request-errors.ts';
import { EVENT_STREAM_TYPE, MCP_ACCEPT } from '../domain/mcp/media-types.ts';
import type { Clock } from '../domain/time/clock.ts';
import { consumeRateLimit } from './callers/caller-check.ts';
import { credentialsOf, hasConsoleHeader, isOwnHost } from './callers/caller-credentials.ts';
import type { OpenRequest, OpenRequests } from './callers/open-requests.ts';
import { HOST, type Proxies } from './callers/proxies.ts';
import { atClose, ClientGone, offClose } from './client-gone.ts';
import type { HttpContext, ReportListener } from './context.ts';
import { HTTP_LIMITS } from './http-limits.ts';
import { HttpCallReport, type ReportedRequest } from './replies/http-call-report.ts';

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
    return credentialsOf(this.#context, this.#options.proxies);
  }

  /** The headers of the request, with its credentials: never forward them unchanged. */
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
   * the path. Until the returned function is called.
   */
  onLost(listener: (reason: Error) => void, pathName = this.#context.state.pathName): () => void {
    const { res: response } = this.#context;
    const request: OpenRequest = { context: this.#context, pathName, end: listener };
    const close = (): void => {
      this.#options.open.delete(request);
      if (!response.writableFinished) listener(new ClientGone());
    };
    if (response.destroyed) {
      close();
      return () => {};
    }
    this.#options.open.add(request);
    atClose(this.#context, close);
    return () => {
      this.#options.open.delete(request);
      offClose(this.#context, close);
    };
  }
}
