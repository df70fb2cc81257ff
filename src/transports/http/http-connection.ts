// The connections to one HTTP backend: a bounded pool for requests, one connection for each stream that stays open, the endpoint,
// and the headers of every request, none of which comes from a client. Session, calls and listener decide what is sent.

import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { InstanceHeldBytes } from '../../domain/held-bytes.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AddressCheck, AddressDenied, deniedBy } from '../network-guard.ts';
import type { OpenOptions } from '../transport.ts';
import type { HttpAnswer } from './http-answer.ts';

export type Headers = Readonly<Record<string, string>>;

type ConnectionOptions = Pick<InstanceDefinition, 'endpoint' | 'headers'> &
  Pick<OpenOptions, 'deniedNetworks' | 'answers'>;

export class HttpConnection {
  /** Path of the endpoint without its query, for messages. */
  readonly path: string;
  readonly origin: string;
  readonly #pool: Pool;
  readonly #target: string;
  readonly #headers: Headers;
  readonly #connect: ReturnType<typeof guardedConnector>;
  readonly #answers: InstanceHeldBytes | undefined;
  readonly #streams = new Set<Client>();
  readonly #closing = new AbortController();
  #lastId = 0;

  /** Throws TypeError for an endpoint that is no http(s) URL, RangeError for an invalid denied network. */
  constructor({ endpoint = '', headers, deniedNetworks, answers }: ConnectionOptions) {
    this.#answers = answers;
    const url = new URL(endpoint);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not an http(s) URL');
    this.path = url.pathname;
    this.origin = url.origin;
    this.#connect = guardedConnector(deniedNetworks, {
      timeout: LIMITS.connectMs,
      signal: this.#closing.signal,
    });
    this.#target = `${url.pathname}${url.search}`;
    this.#headers = {
      ...ownHeaders(headers),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    // The dispatcher owns deadlines; undici's only prevent endless waits.
    this.#pool = new Pool(url.origin, {
      connections: MOST_CONNECTIONS,
      connect: this.#connect,
      pipelining: 1,
      headersTimeout: LIMITS.callLongestMs,
      bodyTimeout: LIMITS.callLongestMs,
    });
  }

  /** True for a call while unfinished answers hold so much that the backend should not be asked for more. */
  refuses(method: string): boolean {
    return this.#answers?.refuses(method) === true;
  }

  /** A request id that no session has used: not every backend tells sessions apart. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** POSTs one message. Every failure goes to `answer`. `path`: default is that of the endpoint. */
  post(body: string, headers: Headers, answer: HttpAnswer, path: string = this.#target): void {
    const all = { ...this.#headers, ...headers };
    this.#dispatch({ path, method: 'POST', headers: all, body }, answer);
  }

  /** POSTs one message whose answer is a stream that stays open. */
  subscribe(body: string, headers: Headers, answer: HttpAnswer): void {
    const all = { ...this.#headers, ...headers };
    this.#stream({ path: this.#target, method: 'POST', headers: all, body }, answer);
  }

  /** Requests a stream of messages that belong to no request, or the rest of a stream. */
  get(headers: Headers, answer: HttpAnswer): void {
    this.#dispatch(this.#request(headers), answer);
  }

  /** Like `get` on a separate connection, for one of many streams that stay open. */
  listen(headers: Headers, answer: HttpAnswer): void {
    this.#stream(this.#request(headers), answer);
  }

  /** The path of a URL that the backend named; undefined for another origin. */
  pathOf(written: string): string | undefined {
    const base = `${this.origin}${this.#target}`;
    if (!URL.canParse(written, base)) return undefined;
    const { origin, pathname, search } = new URL(written, base);
    return origin === this.origin ? `${pathname}${search}` : undefined;
  }

  delete(headers: Headers, answer: HttpAnswer): void {
    const all = { ...this.#headers, ...headers };
    this.#dispatch({ path: this.#target, method: 'DELETE', headers: all }, answer);
  }

  async destroy(): Promise<void> {
    const destroyed = [...this.#streams, this.#pool].map((dispatcher) => dispatcher.destroy());
    // undici waits for connections that are still being made.
    this.#closing.abort();
    await Promise.all(destroyed);
  }

  #dispatch(request: Dispatcher.DispatchOptions, answer: HttpAnswer): void {
    answer.countIn(this.#answers);
    this.#pool.dispatch(request, answer);
  }

  #request(headers: Headers): Dispatcher.DispatchOptions {
    const all = { ...this.#headers, accept: 'text/event-stream', ...headers };
    return { path: this.#target, method: 'GET', headers: all };
  }

  /** Uses no connection of the pool, which the calls need. A stream may be silent for any time: TCP detects a lost peer. */
  #stream(request: Dispatcher.DispatchOptions, answer: HttpAnswer): void {
    const client = new Client(this.origin, {
      connect: this.#connect,
      headersTimeout: LIMITS.callLongestMs,
      bodyTimeout: 0,
    });
    this.#streams.add(client);
    answer.countIn(this.#answers);
    client.dispatch(request, answer);
    const forget = (): boolean => this.#streams.delete(client);
    void client.close().then(forget, forget);
  }
}

/** The connections to the endpoint of a definition. Throws BACKEND_UNAVAILABLE, `delivered: 'no'`, if it cannot be used. */
export function connectTo(
  { endpoint = '', headers }: InstanceDefinition,
  { deniedNetworks, answers }: OpenOptions,
): HttpConnection {
  try {
    return new HttpConnection({ endpoint, headers, deniedNetworks, answers });
  } catch (cause) {
    throw backendUnavailable('its endpoint cannot be used', { delivered: 'no', cause });
  }
}

/** Openings have separate connections, so that hanging openings do not delay calls. */
const MOST_CONNECTIONS =
  LIMITS.inFlightPerInstance +
  LIMITS.inFlightReserve +
  LIMITS.parkedCalls +
  LIMITS.openingsPerInstance +
  LIMITS.spareConnections;

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

/** The headers of a definition without those that the protocol owns. */
function ownHeaders(headers: Headers): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(lower.filter(([name]) => !PROTOCOL_HEADERS.has(name)));
}

interface ConnectorOptions {
  /** Longest wait for a connection, in ms. */
  readonly timeout: number;
  /** Ends the connections, also those that are still being made. */
  readonly signal?: AbortSignal;
  readonly lookup?: LookupFunction;
}

/** Refuses denied addresses with AddressDenied. Names are checked after their lookup, on the used address (DNS rebinding). */
export function guardedConnector(
  networks: readonly string[],
  { lookup = systemLookup, ...options }: ConnectorOptions,
): buildConnector.connector {
  const isDenied = deniedBy(networks);
  const connect = buildConnector({ ...options, lookup: guardedLookup(isDenied, lookup) });
  return (options, callback) => {
    // Sockets skip the lookup for literal addresses, so those are checked here.
    if (isIP(options.hostname) !== 0 && isDenied(options.hostname)) {
      callback(new AddressDenied(options.hostname), null);
      return;
    }
    connect(options, callback);
  };
}

function guardedLookup(isDenied: AddressCheck, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, found, family) => {
      if (error) return callback(error, found, family);
      if (!Array.isArray(found)) {
        return isDenied(found) ? callback(new AddressDenied(found), '') : callback(null, found, family);
      }
      const allowed = found.filter(({ address }) => !isDenied(address));
      const [first] = found;
      if (allowed.length === 0 && first) return callback(new AddressDenied(first.address), []);
      callback(null, allowed);
    });
  };
}
