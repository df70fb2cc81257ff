// The way to one HTTP backend: a bounded pool for requests, one connection for each stream that stays open, the endpoint, and the
// headers of every request, none of which comes from a client. Session, calls and event stream decide which requests are sent.

import { secretsOf } from '../../domain/instances/hidden-secrets.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isLoopback } from '../../domain/local-address.ts';
import { EVENT_STREAM_TYPE, MCP_ACCEPT } from '../../domain/mcp/media-types.ts';
import type { InstanceHeldBytes } from '../../domain/memory/held-bytes.ts';
import type { UserShares } from '../../domain/memory/user-shares.ts';
import { wordsIn } from '../../domain/text.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { ConnectionPool } from '../../net/http1/connection-pool.ts';
import { type Connector, guardedConnector } from '../../net/http1/connector.ts';
import { RequestWriter } from '../../net/http1/request-writer.ts';
import { BackendHandshakes } from '../../net/tls/backend-handshakes.ts';
import type { BearerTokens } from '../backend-account.ts';
import type { NetworkOptions, OpenOptions } from '../open-options.ts';
import type { HttpAnswer, Sender, Sending } from './answers/http-answer.ts';
import { PLAIN_TEXT, refusalText } from './answers/refusal-text.ts';
import type { CookieJar } from './sessions/cookie-jar.ts';

/** Dedicated conversations that are opened with one HTTP instance at the same time; the next ones wait. */
export const MAX_OPENINGS_PER_INSTANCE = 512;
/** Connections per HTTP instance besides the exchanges and the openings: the listening stream, probes, cancels and replies. */
const SPARE_CONNECTIONS = 8;

export type Headers = Sending['headers'];

interface SendOptions {
  /** The cookies of the conversation. Default: none are sent or kept. */
  readonly jar?: CookieJar | undefined;
  /** The path of the request. Default: that of the endpoint. */
  readonly path?: string | undefined;
  /**
   * True when the answer is a stream that stays open: it gets a connection of its own, because calls need those of the
   * pool.
   */
  readonly isLasting?: boolean;
}

/** The connections to one endpoint, which was validated when it was registered. */
export class HttpEndpoint implements Sender {
  /** Path of the endpoint without its query, for messages. */
  readonly path: string;
  readonly origin: string;
  readonly clock: Clock;
  readonly #pool: ConnectionPool;
  readonly #connector: Connector;
  /** A connection for each answer that stays open, because calls need those of the pool. TCP detects a lost peer. */
  #streams: ConnectionPool | undefined;
  readonly scheduler: OpenOptions['scheduler'] | undefined;
  readonly #target: string;
  readonly #host: string;
  /** True when cookies for secure connections are kept: over TLS, and on this machine. */
  readonly #isSecure: boolean;
  readonly #writer: RequestWriter;
  /** Counts the messages without an answer that are under way. */
  readonly waitingBytes: UserShares | undefined;
  readonly answers: InstanceHeldBytes | undefined;
  readonly tokens: BearerTokens | undefined;
  readonly #secrets: readonly string[];
  /** The headers of the last request with a token: those of a session are the same object each time. */
  #last: { readonly token: string; readonly plain: Headers; readonly headers: Headers } | undefined;
  #lastId = 0;

  constructor(
    definition: Pick<InstanceDefinition, 'endpoint' | 'headers'> &
      Partial<Pick<InstanceDefinition, 'env' | 'secretEnv'>>,
    {
      isDenied,
      lookup,
      clock,
      handshakes = new BackendHandshakes(clock),
      answers,
      waitingBytes,
      scheduler,
      tokens,
    }: NetworkOptions &
      Pick<OpenOptions, 'clock'> &
      Partial<Pick<OpenOptions, 'answers' | 'waitingBytes' | 'scheduler'>>,
  ) {
    this.clock = clock;
    this.scheduler = scheduler;
    this.waitingBytes = waitingBytes;
    this.answers = answers;
    this.tokens = tokens;
    this.#secrets = secretsOf(definition);
    const { endpoint = '', headers } = definition;
    const url = new URL(endpoint);
    this.path = url.pathname;
    this.origin = url.origin;
    this.#host = url.hostname;
    this.#isSecure = url.protocol === 'https:' || isLoopback(url.hostname);
    this.#target = `${url.pathname}${url.search}`;
    this.#writer = new RequestWriter(url.host, {
      ...ownHeaders(headers),
      'content-type': 'application/json',
      accept: MCP_ACCEPT,
    });
    this.#connector = guardedConnector(url, isDenied, handshakes, lookup);
    this.#pool = new ConnectionPool(this.#connector, {
      clock,
      maxConnections: MAX_CONNECTIONS,
      scheduler,
    });
  }

  /** Values that no text for callers may contain. */
  get secrets(): readonly string[] {
    return this.#last === undefined ? this.#secrets : [this.#last.token, ...this.#secrets];
  }

  /** True for a call while unfinished answers hold so much that the backend should not be asked for more. */
  refuses(method: string, callerId: string | undefined): boolean {
    return this.answers?.refuses(method, callerId) === true;
  }

  /** A request id that no session has used: not every backend tells sessions apart. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** POSTs one message. Every failure goes to `answer`. */
  post(body: string, headers: Headers, answer: HttpAnswer, options?: SendOptions): void {
    this.#begin('POST', headers, answer, body, options);
  }

  /** Requests a stream of messages that belong to no request, or the rest of a stream. */
  get(headers: Headers, answer: HttpAnswer, options?: SendOptions): void {
    this.#begin('GET', { accept: EVENT_STREAM_TYPE, ...headers }, answer, null, options);
  }

  delete(headers: Headers, answer: HttpAnswer, options?: SendOptions): void {
    this.#begin('DELETE', headers, answer, null, options);
  }

  /** The message of an error for callers that get no JSON-RPC of this server. */
  textOf({ message }: { readonly message: string }): string {
    return refusalText(Buffer.from(message), PLAIN_TEXT, this.secrets);
  }

  /** The path of a URL that the backend named in its answer to `from`; undefined for another origin. */
  pathOf(written: string, from = this.#target): string | undefined {
    const base = `${this.origin}${from}`;
    if (!URL.canParse(written, base)) return undefined;
    const { origin, pathname, search } = new URL(written, base);
    return origin === this.origin ? `${pathname}${search}` : undefined;
  }

  /** Keeps the cookies that an answer to a path sets. */
  keepCookies(jar: CookieJar, path: string, header: string | readonly string[]): void {
    jar.keep(header, { host: this.#host, path, isSecure: this.#isSecure }, this.clock);
  }

  destroy(): void {
    this.#pool.destroy();
    this.#streamPool().destroy(); // also of streams that would begin later
  }

  /** Sends a request, or sends it again. */
  send(sending: Sending, answer: HttpAnswer): void {
    if (this.tokens === undefined) this.#send(sending, answer);
    else this.#sendWithToken(sending, answer, this.tokens);
  }

  #sendWithToken(sending: Sending, answer: HttpAnswer, tokens: BearerTokens): void {
    const token = tokens.current();
    const send = (present: string) => {
      if (this.#last?.token !== present || this.#last.plain !== sending.headers)
        this.#last = {
          token: present,
          plain: sending.headers,
          headers: { ...sending.headers, authorization: `Bearer ${present}` },
        };
      this.#send({ ...sending, token: present }, answer, this.#last.headers);
    };
    if (typeof token === 'string') send(token);
    else answer.holdFor(token).then(send, (thrown: unknown) => answer.fail(thrown));
  }

  #send(sending: Sending, answer: HttpAnswer, headers = sending.headers): void {
    answer.sentBy(this, sending);
    const cookie = sending.jar?.headerFor(sending.path, this.clock, this.#writer.fields.cookie);
    let text: string | Buffer;
    try {
      text = this.#writer.textOf(headers === sending.headers ? sending : { ...sending, headers }, cookie);
    } catch (thrown) {
      answer.onResponseError(thrown as Error);
      return;
    }
    (sending.isLasting ? this.#streamPool() : this.#pool).dispatch({ text, answer });
  }

  #streamPool(): ConnectionPool {
    this.#streams ??= new ConnectionPool(this.#connector, {
      clock: this.clock,
      maxConnections: Number.POSITIVE_INFINITY,
      isKept: false,
      scheduler: this.scheduler,
    });
    return this.#streams;
  }

  #begin(
    method: Sending['method'],
    headers: Headers,
    answer: HttpAnswer,
    body: string | null,
    { path = this.#target, isLasting = false, jar }: SendOptions = {},
  ): void {
    this.send({ path, method, headers, body, isLasting, jar, isRedirected: false }, answer);
  }
}

/** Openings have separate connections, so that hanging openings do not delay calls. */
const MAX_CONNECTIONS =
  LIMITS.inFlightPerInstance +
  LIMITS.inFlightHeadroom +
  LIMITS.callsAwaitingClient +
  MAX_OPENINGS_PER_INSTANCE +
  SPARE_CONNECTIONS;

/** Headers that belong to HTTP or to MCP: a definition cannot set them. */
const PROTOCOL_HEADERS: ReadonlySet<string> = new Set(
  wordsIn(
    'host connection keep-alive content-length transfer-encoding upgrade expect te',
    'trailer content-type accept accept-encoding',
    'mcp-session-id mcp-protocol-version mcp-method mcp-name last-event-id',
  ),
);

/** The headers of a definition without those that the protocol owns. */
function ownHeaders(headers: Headers): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(lower.filter(([name]) => !PROTOCOL_HEADERS.has(name)));
}
