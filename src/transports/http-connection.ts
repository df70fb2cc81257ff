// The connections to one HTTP backend: a bounded pool, the endpoint, and the headers every request carries.
// Nothing of a client is ever among them. What is said over the connections is decided by session, calls and listener.

import { Pool } from 'undici';
import { LIMITS } from '../domain/limits.ts';
import type { HttpAnswer } from './http-answer.ts';
import { guardedConnector } from './network-guard.ts';

export type Headers = Readonly<Record<string, string>>;

/** What a connection is made of. */
export interface ConnectionOptions {
  readonly endpoint: string;
  /** Headers of the instance's definition; those that the protocol owns are left out. */
  readonly headers: Headers;
  readonly deniedNetworks: readonly string[];
}

/** A pool of keep-alive connections to one endpoint. */
export class HttpConnection {
  /** Path of the endpoint without its query, for messages. */
  readonly path: string;
  readonly #pool: Pool;
  readonly #target: string;
  readonly #headers: Headers;

  /** Throws TypeError for an endpoint that is no http(s) URL, RangeError for a denied network that is none. */
  constructor(options: ConnectionOptions) {
    const url = new URL(options.endpoint);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not an http(s) URL');
    this.path = url.pathname;
    this.#target = `${url.pathname}${url.search}`;
    this.#headers = {
      ...ownHeaders(options.headers),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    // The dispatcher owns deadlines; undici's only see to it that nothing waits for ever.
    this.#pool = new Pool(url.origin, {
      connections: LIMITS.inFlightPerInstance + LIMITS.spareConnections,
      connect: guardedConnector(options.deniedNetworks, LIMITS.connectMs),
      pipelining: 1,
      headersTimeout: LIMITS.callLongestMs,
      bodyTimeout: LIMITS.callLongestMs,
    });
  }

  /** POSTs one message. Failures of any kind reach the answer, never the caller. */
  post(body: string, headers: Headers, answer: HttpAnswer): void {
    const all = { ...this.#headers, ...headers };
    this.#pool.dispatch({ path: this.#target, method: 'POST', headers: all, body }, answer);
  }

  /** Opens the stream of notifications that belong to no request. */
  listen(headers: Headers, answer: HttpAnswer): void {
    const all = { ...this.#headers, accept: 'text/event-stream', ...headers };
    this.#pool.dispatch({ path: this.#target, method: 'GET', headers: all }, answer);
  }

  /** Ends a session. */
  delete(headers: Headers, answer: HttpAnswer): void {
    const all = { ...this.#headers, ...headers };
    this.#pool.dispatch({ path: this.#target, method: 'DELETE', headers: all }, answer);
  }

  /** Closes every connection; requests that are left break. Idempotent. */
  async destroy(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** Headers that belong to HTTP or to MCP: a definition cannot set them. */
const PROTOCOL_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
  'content-type',
  'accept',
  'accept-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'last-event-id',
]);

function ownHeaders(headers: Headers): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(lower.filter(([name]) => !PROTOCOL_HEADERS.has(name)));
}
