// The session with one HTTP backend: the agreement of the handshake and the session id. There is one for the transport itself and
// one for each client with a conversation of its own, so an idle one has to be small. It detects that a backend forgot the session;
// http-conversation.ts decides what follows. Sessions are deleted so many at a time.

import type { ClientProfile, ClientReply } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { cancellation, type ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { idValue, type JsonRpcId } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Era, Peer } from '../../domain/mcp.ts';
import { type ClientInfo, eraHeaders, shakeHands } from '../handshake.ts';
import type { OpeningMemory } from '../transport.ts';
import type { HttpAnswer, RefusedEnding } from './http-answer.ts';
import type { Headers, HttpConnection } from './http-connection.ts';
import { ask, HttpHandshake } from './http-handshake.ts';
import { DISCOVER_PATIENCE_MS, shakeFirstHands } from './http-probe.ts';

/** Options for opening a session. */
export interface SessionOptions {
  readonly client: ClientInfo;
  readonly handshakeTimeoutMs: number;
  /** The client it is for; absent for the transport's own. */
  readonly profile?: ClientProfile;
  /** Without a profile: the results of earlier openings, and of this one. */
  readonly memory?: OpeningMemory | undefined;
  /** Longest wait for its first answer. Default DISCOVER_PATIENCE_MS. */
  readonly patienceMs?: number | undefined;
  /** The known era of the backend. Default: that of the lost session. */
  readonly known?: Era;
  /**
   * With a profile, of a backend that is modern: it is not known whether it speaks the legacy era, too. One that does not
   * answer `initialize` for so long, but `server/discover`, does not; the session is modern then.
   */
  readonly initializeMs?: number;
  /** Returns the same object for equal peers, so that they are kept once. */
  readonly intern?: (peer: Peer) => Peer;
}

/** The agreement of one handshake; the next one replaces it as a whole. */
interface Agreement {
  readonly peer: Peer;
  readonly sessionId: string | undefined;
  /** Headers of every request of a legacy or bare backend; modern ones are made per request. */
  readonly headers: Headers;
}

/** A session, or its substitute for backends that have none. */
export class HttpSession {
  readonly #connection: HttpConnection;
  readonly #options: SessionOptions;
  #agreement: Agreement = NOTHING_AGREED;
  #epoch = 0;
  #initializeStatus: number | undefined;
  #courtesies = 0;
  #isClosed = false;
  /** Ends the handshake that is under way. */
  #opening: AbortController | undefined;
  #reopening: Promise<void> | undefined;
  #reopened: (() => void) | undefined;

  constructor(connection: HttpConnection, options: SessionOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** The results of the latest handshake. */
  get peer(): Peer {
    return this.#agreement.peer;
  }

  /** True when the backend keeps a session for the gateway. */
  get hasSession(): boolean {
    return this.#agreement.sessionId !== undefined;
  }

  /** The status with which a backend refused `initialize`, when its opening failed. */
  get initializeStatus(): number | undefined {
    return this.#initializeStatus;
  }

  /** Counts handshakes: tells a call whether the session it was sent in is still the present one. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Headers of one request in the present session. */
  headers(request: ExchangeRequest): Headers {
    const { peer, headers } = this.#agreement;
    return peer.era === 'modern' ? eraHeaders(request, peer) : headers;
  }

  /** Shakes hands. Rejects with GatewayError; `signal` ends the wait. */
  async open(signal: AbortSignal): Promise<void> {
    const opening = new AbortController();
    const stop = (): void => opening.abort();
    if (this.#isClosed || signal.aborted) stop();
    // Removed afterwards: a signal may live as long as the gateway.
    signal.addEventListener('abort', stop);
    this.#opening = opening;
    const { known, initializeMs, handshakeTimeoutMs } = this.#options;
    const discoverMs = initializeMs ?? Math.ceil(handshakeTimeoutMs / 2);
    const { signal: ended } = opening;
    const channel = new HttpHandshake(this.#connection, { signal: ended, discoverMs, initializeMs, known });
    try {
      const peer = await this.#shakeHands(channel, signal);
      if (peer.era !== 'legacy') this.#disown(channel.sessionId);
      this.#agree(peer, channel.sessionId);
    } catch (thrown) {
      this.#initializeStatus = channel.initializeStatus;
      this.#disown(channel.sessionId);
      throw thrown;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#opening = undefined;
    }
  }

  /**
   * Whether a refusal means that the backend does not know the session any more. The specification wants 404; servers
   * also answer 400 with an error that names no request, or with the SDK's codes for a session it does not know.
   * Source: MCP 2025-11-25 basic/transports#session-management; measured.
   */
  isLost(refused: RefusedEnding, id: number): boolean {
    if (!this.hasSession) return false;
    if (refused.status === 404) return true;
    if (refused.status !== 400 || refused.error === undefined) return false;
    return refused.error.id !== id || SESSION_CODES.has(refused.error.error.code);
  }

  /** Opens a new session in place of the one of `epoch`. All callers that lost it share a single handshake. */
  reopen(epoch: number): Promise<void> {
    if (epoch !== this.#epoch) return Promise.resolve();
    this.#reopening ??= this.#openAgain();
    return this.#reopening;
  }

  /** Sets the callback that runs after a session was opened in place of a lost one. */
  onReopened(reopened: () => void): void {
    this.#reopened = reopened;
  }

  /** Cancels a request that is no longer waited for, at a backend of the legacy era. Never rejects, waits briefly. */
  async cancel(requestId: number, reason?: string): Promise<void> {
    const method = 'notifications/cancelled';
    await this.#post({ jsonrpc: '2.0', method, params: cancellation(requestId, reason) }, method);
  }

  /** Sends a notification, unless too many are under way. Never rejects, waits briefly. */
  async notify(method: string, params: JsonObject): Promise<void> {
    await this.#bounded({ jsonrpc: '2.0', method, params }, method);
  }

  /** Answers a request of the backend, unless too many answers are under way. Never rejects, waits briefly. */
  async reply(id: JsonRpcId, reply: ClientReply): Promise<void> {
    await this.#bounded({ jsonrpc: '2.0', id: idValue(id), ...reply }, '');
  }

  /** Ends a handshake that is under way; there will be no other. */
  close(): void {
    this.#isClosed = true;
    this.#opening?.abort();
  }

  /** Ends the session on the backend, as far as it listens. Never rejects. */
  async end(): Promise<void> {
    if (this.hasSession) await this.#endSession(this.#agreement.headers);
  }

  async #shakeHands(channel: HttpHandshake, signal: AbortSignal): Promise<Peer> {
    const { client, profile, initializeMs, handshakeTimeoutMs, memory = {} } = this.#options;
    const { patienceMs = DISCOVER_PATIENCE_MS } = this.#options;
    const known = this.#agreement === NOTHING_AGREED ? undefined : this.peer.era;
    if (known === undefined && profile === undefined) {
      const shortMs = Math.min(patienceMs, handshakeTimeoutMs / 4);
      return shakeFirstHands(channel, { client, memory, signal, patienceMs: shortMs });
    }
    const mayBeModern = initializeMs !== undefined;
    const peer = await shakeHands(channel, { client, first: 'legacy', profile, mayBeModern });
    if (known !== undefined && known !== peer.era) {
      const reason = `it speaks the ${peer.era} era now, it spoke the ${known} era before`;
      throw backendUnavailable(reason, { delivered: 'no', suspicious: true });
    }
    return this.#options.intern?.(peer) ?? peer;
  }

  /** The backend keeps a session that no client will use. */
  #disown(sessionId: string | undefined): void {
    if (sessionId !== undefined) void this.#endSession({ 'mcp-session-id': sessionId });
  }

  #agree(peer: Peer, givenId: string | undefined): void {
    const sessionId = peer.era === 'legacy' ? givenId : undefined;
    const session: Headers = sessionId === undefined ? {} : { 'mcp-session-id': sessionId };
    const headers = { ...eraHeaders({ method: 'ping' }, peer), ...session };
    this.#agreement = { peer, sessionId, headers };
    this.#epoch += 1;
  }

  async #openAgain(): Promise<void> {
    try {
      await this.open(AbortSignal.timeout(this.#options.handshakeTimeoutMs));
    } finally {
      this.#reopening = undefined;
    }
    this.#reopened?.();
  }

  async #bounded(message: object, method: string): Promise<void> {
    if (this.#courtesies >= LIMITS.repliesUnderWay) return;
    this.#courtesies += 1;
    await this.#post(message, method);
    this.#courtesies -= 1;
  }

  async #post(message: object, method: string): Promise<void> {
    const body = JSON.stringify(message);
    await this.#briefly((answer) => this.#connection.post(body, this.headers({ method }), answer));
  }

  async #endSession(headers: Headers): Promise<void> {
    await this.#briefly((answer) => this.#connection.delete(headers, answer));
  }

  async #briefly(send: (answer: HttpAnswer) => void): Promise<void> {
    await ask(send, undefined, AbortSignal.timeout(LIMITS.courtesyMs));
  }
}

const NOTHING_AGREED: Agreement = {
  peer: {
    era: 'bare',
    protocolVersion: '',
    serverName: '',
    serverVersion: '',
    capabilities: {},
    greeting: {},
  },
  sessionId: undefined,
  headers: {},
};

const SESSION_CODES: ReadonlySet<number> = new Set([-32000, -32001]);
