// What a handler may know of the request besides its input: id, caller, what is accepted, and when the client leaves.
// Everything is worked out on demand, because the hot path asks for almost none of it.

import type { IncomingHttpHeaders } from 'node:http';
import type { RateLimiter } from '../auth/auth.ts';
import { whenGone } from './client-gone.ts';
import type { HttpContext } from './context.ts';
import type { Proxies } from './proxies.ts';
import { consumeRateLimitUpTo } from './rate-limit.ts';

/** Facts of one request. */
export class RequestState {
  readonly #context: HttpContext;
  readonly #proxies: Proxies;
  #leaving: AbortController | undefined;

  constructor(context: HttpContext, proxies: Proxies) {
    this.#context = context;
    this.#proxies = proxies;
  }

  /** The value of `X-Request-ID`. */
  get id(): string {
    return this.#context.state.requestId;
  }

  /** Id of the principal; undefined before anybody is known. */
  get callerId(): string | undefined {
    return this.#context.state.principal?.id;
  }

  /** True for HEAD: nothing follows the headers. */
  get isHead(): boolean {
    return this.#context.req.method === 'HEAD';
  }

  /** Address of the client; undefined when the socket is gone. */
  get address(): string | undefined {
    return this.#proxies.address(this.#context.req);
  }

  /** True when the caller runs on this machine and no untrusted proxy stands between. */
  get isLocal(): boolean {
    return this.#proxies.isLocal(this.#context.req);
  }

  /** All headers as Node gives them, credentials included: for those who hand none of them on. */
  get headers(): IncomingHttpHeaders {
    return this.#context.req.headers;
  }

  /** The `Origin` header: only browsers send it. */
  get origin(): string | undefined {
    return this.#context.req.headers.origin;
  }

  /** The path as it was asked for, without the query. */
  get path(): string {
    return this.#context.path;
  }

  /** The `If-None-Match` header: what the client has already. */
  get ifNoneMatch(): string | undefined {
    return this.#context.req.headers['if-none-match'];
  }

  /** True when the client prefers server-sent events to JSON; named alike, the first of them counts. */
  get wantsEventStream(): boolean {
    const { accept } = this.#context.req.headers;
    if (accept === undefined) return false;
    const stream = accept.indexOf('text/event-stream');
    if (stream === -1) return false;
    // MCP clients name both, JSON first, on every call: that is settled without the negotiator.
    if (!accept.includes(';')) return accept.lastIndexOf('application/json', stream) === -1;
    return this.#context.accepts('application/json', 'text/event-stream') === 'text/event-stream';
  }

  /** True when the client prefers a page to JSON: browsers do. */
  get wantsPage(): boolean {
    return this.#context.accepts('application/json', 'text/html') === 'text/html';
  }

  /** Counts the HTTP request as so many requests of the caller, where authorize.ts did not; see rate-limit.ts. */
  charge(limiter: RateLimiter, count: number): void | Promise<void> {
    return consumeRateLimitUpTo(this.#context.state, limiter, count);
  }

  /** Counts the memory of the body until what it returns is called, also after the response. Undefined for a small body. */
  get keepBody(): (() => () => void) | undefined {
    const { heldBody } = this.#context.state;
    return heldBody && (() => heldBody.keep());
  }

  /** Aborts when the client goes away before the answer is complete. Made on first use. */
  get signal(): AbortSignal {
    if (this.#leaving === undefined) {
      const leaving = new AbortController();
      this.#leaving = leaving;
      this.onGone(() => leaving.abort());
    }
    return this.#leaving.signal;
  }

  /** Calls back when the client goes away before the answer is complete; cheaper than `signal`. */
  onGone(listener: () => void): void {
    whenGone(this.#context.res, listener);
  }
}
