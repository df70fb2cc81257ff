// The session with one HTTP backend: the result of the handshake and the session id. The transport has one, and each client with a
// dedicated conversation has one, so an idle session must be small. It detects that a backend forgot the session;
// http-conversation.ts decides what follows.

import type { ClientProfile, ClientReply } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { cancellation, type ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { idValue, type JsonRpcId, RPC } from '../../domain/jsonrpc.ts';
import { CANCELLED, type Era, type Peer } from '../../domain/mcp.ts';
import { boundedHandshake } from '../bounded-handshake.ts';
import { eraHeaders, NO_PEER, shakeHands } from '../handshake.ts';
import type { OpenOptions } from '../transport.ts';
import type { HttpAnswer, RefusedEnding } from './http-answer.ts';
import type { Headers, HttpConnection } from './http-connection.ts';
import { HttpHandshake, sendUnawaited, UnawaitedMessages } from './http-handshake.ts';

/** Longest wait for the first `server/discover`, at most a quarter of the handshake's time. Source: ADR 33. */
const DISCOVER_TIMEOUT_MS = 3_000;

export interface SessionOptions extends Pick<OpenOptions, 'client' | 'handshakeTimeoutMs' | 'scheduler'> {
  /** The client; absent for the session of the transport itself. */
  readonly profile?: ClientProfile;
  readonly known?: Era;
  /** Returns one object for all equal peers, to save memory. */
  readonly intern?: (peer: Peer) => Peer;
}

interface SessionState {
  readonly peer: Peer;
  readonly sessionId: string | undefined;
  /** Headers of every request of a legacy or bare backend; modern ones are made per request. */
  readonly headers: Headers;
}

/** A session; with a backend that keeps none, only the result of the handshake. */
export class HttpSession {
  /** Set when the backend speaks another era than before, so that no session can replace this one. A clause. */
  newEra: string | undefined;
  readonly #connection: HttpConnection;
  readonly #options: SessionOptions;
  #state: SessionState = NOT_OPEN;
  /** Counts handshakes: a call compares it to see whether its session was replaced. */
  epoch = 0;
  readonly #unawaited = new UnawaitedMessages();
  #closing: AbortController | undefined;
  #reopening: Promise<void> | undefined;
  #reopened: (() => void) | undefined;
  /** Deletes the session that a failed handshake was given. */
  #abandoning: Promise<void> | undefined;

  constructor(connection: HttpConnection, options: SessionOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  get peer(): Peer {
    return this.#state.peer;
  }

  get hasSession(): boolean {
    return this.#state.sessionId !== undefined;
  }

  headers(request: ExchangeRequest): Headers {
    const { peer, headers } = this.#state;
    return peer.era === 'modern' ? eraHeaders(request, peer) : headers;
  }

  /** Shakes hands, in time. Rejects with GatewayError, `delivered: 'no'`; `signal` aborts the handshake. */
  open(signal: AbortSignal, handshakeTimeoutMs = this.#options.handshakeTimeoutMs): Promise<void> {
    const discoverMs = Math.min(DISCOVER_TIMEOUT_MS, Math.ceil(handshakeTimeoutMs / 4));
    const bounds = { ...this.#options, signal, handshakeTimeoutMs };
    return boundedHandshake(bounds, (bound) => this.#open(bound, discoverMs));
  }

  async #open(signal: AbortSignal, discoverMs: number): Promise<void> {
    const { known } = this.#options;
    const channel = new HttpHandshake(this.#connection, { signal, discoverMs, known });
    try {
      const peer = await this.#shakeHands(channel);
      const sessionId = peer.era === 'legacy' ? channel.sessionId : undefined;
      const session: Headers = sessionId === undefined ? {} : { 'mcp-session-id': sessionId };
      this.#state = { peer, sessionId, headers: { ...eraHeaders({ method: 'ping' }, peer), ...session } };
      this.epoch += 1;
    } catch (thrown) {
      const { sessionId } = channel;
      if (sessionId !== undefined) this.#abandoning = this.#delete({ 'mcp-session-id': sessionId });
      throw thrown;
    }
  }

  /**
   * True when a refusal may mean that the backend no longer knows the session, or was replaced by one that requires a session or
   * speaks another era. The specification demands 404 for an unknown session; servers also answer 400 with an error that names no
   * request, or with the SDK's codes. A modern server answers 400 with a code of its era. A 404 with an error about this very
   * request, such as an unknown method, is its answer. Without a session, each error that may come after work is one.
   * Sources: MCP 2025-11-25 basic/transports#session-management; 2026-07-28 streamable-http#backward-compatibility; measured.
   */
  isLost({ status, error }: RefusedEnding, id: number): boolean {
    const { era } = this.peer;
    const ownCode = error?.id === id ? error.error.code : undefined;
    if (status === 404) return this.hasSession && (ownCode === undefined || !ANSWER_CODES.has(ownCode));
    if (status !== 400 || error === undefined || era === 'bare') return false;
    if (MODERN_CODES.includes(error.error.code)) return era === 'legacy';
    if (ownCode !== undefined) return this.hasSession && SESSION_CODES.has(ownCode);
    return this.hasSession || !ANSWER_CODES.has(error.error.code);
  }

  /** Replaces the session of `epoch`. All callers that lost it share one handshake. */
  reopen(epoch: number): Promise<void> {
    if (epoch !== this.epoch) return Promise.resolve();
    this.#reopening ??= this.#openAgain();
    return this.#reopening;
  }

  onReopened(reopened: () => void): void {
    this.#reopened = reopened;
  }

  /** Notifies a legacy backend that a request is cancelled. Never rejects, waits at most LIMITS.backgroundMs. */
  async cancel(requestId: number, reason?: string): Promise<void> {
    const params = cancellation(requestId, reason);
    await sendUnawaited(this.#posting({ method: CANCELLED, params }, CANCELLED));
  }

  /** Sends a notification, unless too many are under way. Never rejects, waits at most LIMITS.backgroundMs. */
  async notify(method: string, params: JsonObject): Promise<void> {
    await this.#unawaited.send(this.#posting({ method, params }, method), { isUrgent: false });
  }

  /** Answers a request of the backend, unless too many answers are under way. Never rejects, waits at most LIMITS.backgroundMs. */
  async reply(id: JsonRpcId, reply: ClientReply): Promise<void> {
    await this.#unawaited.send(this.#posting({ id: idValue(id), ...reply }, ''), { isUrgent: true });
  }

  /** Aborts a reopening that is under way. */
  close(): void {
    this.#closing?.abort();
  }

  /** Deletes the session on the backend, also that of a failed handshake. Never rejects, each takes at most LIMITS.backgroundMs. */
  async end(): Promise<void> {
    if (this.hasSession) await this.#delete(this.#state.headers);
    await this.#abandoning;
  }

  async #shakeHands(channel: HttpHandshake): Promise<Peer> {
    const { client, profile, intern } = this.#options;
    const known = this.#state === NOT_OPEN ? undefined : this.peer.era;
    const first = known === 'legacy' ? 'legacy' : 'modern';
    const peer = await shakeHands(channel, { client, first, profile });
    if (known !== undefined && known !== peer.era) {
      this.newEra = `it speaks the ${peer.era} era now, it spoke the ${known} era before`;
      throw backendUnavailable(this.newEra, { delivered: 'no', suspicious: true });
    }
    return intern?.(peer) ?? peer;
  }

  async #openAgain(): Promise<void> {
    this.#closing = new AbortController();
    try {
      await this.open(this.#closing.signal);
    } finally {
      this.#reopening = undefined;
    }
    this.#reopened?.();
  }

  #posting(message: object, method: string): (answer: HttpAnswer) => void {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    return (answer) => this.#connection.post(body, this.headers({ method }), answer);
  }

  #delete(headers: Headers): Promise<void> {
    return sendUnawaited((answer) => this.#connection.delete(headers, answer));
  }
}

const NOT_OPEN: SessionState = { peer: NO_PEER, sessionId: undefined, headers: {} };

const SESSION_CODES: ReadonlySet<number> = new Set([RPC.badRequest, RPC.sessionNotFound]);
const MODERN_CODES: readonly number[] = [RPC.headerMismatch, RPC.missingCapability, RPC.unsupportedVersion];

/** Codes of errors of which the server has understood the request, and perhaps worked on it. */
const ANSWER_CODES: ReadonlySet<number> = new Set([
  RPC.methodNotFound,
  RPC.invalidParams,
  RPC.internalError,
  RPC.resourceNotFound,
]);
