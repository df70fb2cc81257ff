// The conversation with one HTTP backend: what the handshake agreed on, the session id, and the ids of requests.
// It notices that a backend forgot the session and opens a new one; which call asks for that is decided in
// http-call.ts.

import { backendUnavailable } from '../domain/errors.ts';
import type { ExchangeRequest } from '../domain/exchange.ts';
import { type BackendMessage, RPC } from '../domain/jsonrpc.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Peer } from '../domain/mcp.ts';
import { type ClientInfo, eraHeaders } from './era.ts';
import { shakeHands } from './handshake.ts';
import type { Ending, HttpAnswer } from './http-answer.ts';
import { ask } from './http-ask.ts';
import type { Headers, HttpConnection } from './http-connection.ts';
import { HttpHandshake } from './http-handshake.ts';

/** What opening a session needs. */
export interface SessionOptions {
  readonly client: ClientInfo;
  readonly handshakeTimeoutMs: number;
}

/** What was agreed on by one handshake; replaced as a whole by the next. */
interface Agreement {
  readonly peer: Peer;
  readonly sessionId: string | undefined;
  /** Headers of every request of a legacy or bare backend; modern ones are made per request. */
  readonly headers: Headers;
}

type Refused = Extract<Ending, { kind: 'refused' }>;
type ServerRequest = Extract<BackendMessage, { kind: 'request' }>;

/** A session, or what stands for it with backends that have none. */
export class HttpSession {
  readonly #connection: HttpConnection;
  readonly #options: SessionOptions;
  readonly #closing = new AbortController();
  #agreement: Agreement = NOTHING_AGREED;
  #epoch = 0;
  #lastId = 0;
  #repliesUnderWay = 0;
  #reopening: Promise<void> | undefined;
  #reopened: () => void = () => undefined;

  constructor(connection: HttpConnection, options: SessionOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** What the latest handshake learned. */
  get peer(): Peer {
    return this.#agreement.peer;
  }

  /** Whether the backend keeps a session for us. */
  get hasSession(): boolean {
    return this.#agreement.sessionId !== undefined;
  }

  /** Counts handshakes: tells a call whether the session it was sent in is still the present one. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Request ids are never reused on a connection, whatever session they were used in. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** Headers of one request in the present session. */
  headers(request: ExchangeRequest): Headers {
    const { peer, headers } = this.#agreement;
    return peer.era === 'modern' ? eraHeaders(request, peer) : headers;
  }

  /** Shakes hands. Rejects with GatewayError; `signal` ends the wait. */
  async open(signal: AbortSignal): Promise<void> {
    const { client, handshakeTimeoutMs } = this.#options;
    const both = AbortSignal.any([signal, this.#closing.signal]);
    const channel = new HttpHandshake(
      this.#connection,
      () => this.nextId(),
      both,
      Math.ceil(handshakeTimeoutMs / 2),
    );
    const known = this.#agreement === NOTHING_AGREED ? undefined : this.peer.era;
    const first = known === undefined || known === 'modern' ? 'modern' : 'legacy';
    const peer = await shakeHands(channel, { client, first });
    if (known !== undefined && known !== peer.era) {
      const reason = `it speaks the ${peer.era} era now, it spoke the ${known} era before`;
      throw backendUnavailable(reason, { delivered: 'no', suspicious: true });
    }
    const sessionId = peer.era === 'legacy' ? channel.sessionId : undefined;
    const session: Headers = sessionId === undefined ? {} : { 'mcp-session-id': sessionId };
    const headers = { ...eraHeaders({ method: 'ping' }, peer), ...session };
    this.#agreement = { peer, sessionId, headers };
    this.#epoch += 1;
  }

  /**
   * Whether a refusal means that the backend does not know the session any more. The specification wants 404; servers
   * also answer 400 with an error that names no request, or with the SDK's codes for a session it does not know.
   * Source: MCP 2025-11-25 basic/transports#session-management; measured, mcp page 4.2.
   */
  isLost(refused: Refused, id: number): boolean {
    if (!this.hasSession) return false;
    if (refused.status === 404) return true;
    if (refused.status !== 400 || refused.error === undefined) return false;
    return refused.error.id !== id || SESSION_CODES.has(refused.error.error.code);
  }

  /** Opens a new session in place of the one of `epoch`. Everybody who lost that one shares a single handshake. */
  reopen(epoch: number): Promise<void> {
    if (epoch !== this.#epoch) return Promise.resolve();
    this.#reopening ??= this.#openAgain();
    return this.#reopening;
  }

  /** Sets who is told after a session was opened in place of a lost one. */
  onReopened(reopened: () => void): void {
    this.#reopened = reopened;
  }

  /** Tells a backend of the legacy era that nobody waits for a request any more. Never rejects, waits briefly. */
  async cancel(requestId: number): Promise<void> {
    const method = 'notifications/cancelled';
    const params = { requestId, reason: 'nobody waits for the answer' };
    const body = JSON.stringify({ jsonrpc: '2.0', method, params });
    await this.#briefly((answer) => this.#connection.post(body, this.headers({ method }), answer));
  }

  /** Answers what a backend asked: it is alive to `ping`, and able to nothing else. Never rejects, waits briefly. */
  async reply({ id, method }: ServerRequest): Promise<void> {
    if (this.#repliesUnderWay >= LIMITS.repliesUnderWay) return;
    this.#repliesUnderWay += 1;
    // No capability was declared in the handshake, so a server has nothing else to ask for.
    const outcome = method === 'ping' ? { result: {} } : { error: UNKNOWN_METHOD };
    const body = JSON.stringify({ jsonrpc: '2.0', id, ...outcome });
    await this.#briefly((answer) => this.#connection.post(body, this.headers({ method: '' }), answer));
    this.#repliesUnderWay -= 1;
  }

  /** Ends a handshake that is under way; there will be no other. */
  close(): void {
    this.#closing.abort();
  }

  /** Ends the session on the backend, as far as it listens. Never rejects. */
  async end(): Promise<void> {
    if (!this.hasSession) return;
    const headers = this.#agreement.headers;
    await this.#briefly((answer) => this.#connection.delete(headers, answer));
  }

  async #openAgain(): Promise<void> {
    try {
      await this.open(AbortSignal.timeout(this.#options.handshakeTimeoutMs));
    } finally {
      this.#reopening = undefined;
    }
    this.#reopened();
  }

  async #briefly(send: (answer: HttpAnswer) => void): Promise<void> {
    await ask(send, undefined, AbortSignal.timeout(LIMITS.courtesyMs));
  }
}

const NOTHING_AGREED: Agreement = {
  peer: { era: 'bare', protocolVersion: '', serverName: '', serverVersion: '', capabilities: {} },
  sessionId: undefined,
  headers: {},
};

const SESSION_CODES: ReadonlySet<number> = new Set([-32000, -32001]);
const UNKNOWN_METHOD = { code: RPC.methodNotFound, message: 'Method not found' };
