// The session with one HTTP backend: the result of the handshake and the session id. The transport has one, and
// each client with a dedicated conversation has one, so an idle session must be small. It detects that a backend
// forgot the session; session-replacement.ts opens another one.

import { cancellation, type ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { JsonObject } from '../../../domain/json/json.ts';
import type { ClientAnswer, ClientProfile } from '../../../domain/mcp/client.ts';
import { idValue, type JsonRpcId, numberMeant, RPC, requestText } from '../../../domain/mcp/jsonrpc.ts';
import { CANCELLED, type Era, type Handshake } from '../../../domain/mcp/mcp.ts';
import { boundedHandshake, type HandshakeBounds } from '../../bounded-handshake.ts';
import { eraHeaders } from '../../era-metadata.ts';
import { shakeHands } from '../../handshake.ts';
import type { OpenOptions } from '../../open-options.ts';
import type { RefusedEnding } from '../answers/answer-ending.ts';
import type { HttpAnswer } from '../answers/http-answer.ts';
import { refusedStatus, sendUnawaited, UnawaitedMessages } from '../background-requests.ts';
import type { Headers, HttpEndpoint } from '../http-endpoint.ts';
import { CookieJar } from './cookie-jar.ts';
import { HttpHandshake } from './http-handshake.ts';

/** The longest wait for the first `server/discover`, at most a quarter of the handshake's time. Source: ADR 10. */
const DISCOVER_TIMEOUT_MS = 3_000;

interface HttpSessionOptions extends HandshakeBounds, Pick<OpenOptions, 'client' | 'era'> {
  readonly history?: OpenOptions['history'];
  /** The client; absent for the session of the transport itself. */
  readonly profile?: ClientProfile | undefined;
  /** The era of the transport, for a session of a client. */
  readonly known?: Era;
  /** The era of the session that this one replaces. */
  readonly previous?: Era;
  /**
   * Called before the rejection when the failed handshake was given a session: `deleted` resolves within
   * LIMITS.backgroundMs.
   */
  readonly onAbandoned?: (deleted: Promise<void>) => void;
}

/**
 * Shakes hands, in time. Throws GatewayError, `delivered: 'no'`, and does not wait until the abandoned
 * session is deleted.
 */
export async function openSession(endpoint: HttpEndpoint, options: HttpSessionOptions): Promise<HttpSession> {
  const { client, profile, known, handshakeTimeoutMs, onAbandoned, era, history } = options;
  const first = options.previous === 'legacy' || history?.prefersLegacy ? 'legacy' : 'modern';
  const probeMs = Math.min(DISCOVER_TIMEOUT_MS, Math.ceil(handshakeTimeoutMs / 4));
  const discoverMs = era === 'modern' ? handshakeTimeoutMs : probeMs;
  let channel: HttpHandshake | undefined;
  try {
    return await boundedHandshake(options, async (signal) => {
      channel = new HttpHandshake(endpoint, { signal, discoverMs, known, clock: options.clock });
      const handshake = await shakeHands(channel, { client, first, profile, era });
      const sessionId = handshake.era === 'legacy' ? channel.sessionId : undefined;
      return new HttpSession(endpoint, handshake, sessionId, channel.jar);
    });
  } catch (thrown) {
    if (channel?.sessionId !== undefined) {
      const deleted = deleteSession(endpoint, { 'mcp-session-id': channel.sessionId }, channel.jar);
      onAbandoned?.(deleted);
    }
    throw thrown;
  }
}

/** A session; with a backend that keeps none, only the result of the handshake. */
export class HttpSession {
  /** May be replaced by an equal object, to save memory. */
  handshake: Handshake;
  readonly hasSession: boolean;
  readonly #endpoint: HttpEndpoint;
  /** Headers of every request of a legacy or bare backend; modern ones are made per request. */
  readonly #headers: Headers;
  readonly #unawaited: UnawaitedMessages;
  /** Cookies of the backend; another session does not get them. */
  readonly jar: CookieJar;

  /** `jar`: cookies of the handshake. Default: none. */
  constructor(
    endpoint: HttpEndpoint,
    handshake: Handshake,
    sessionId: string | undefined,
    jar: CookieJar = new CookieJar(),
  ) {
    this.jar = jar;
    this.#endpoint = endpoint;
    this.#unawaited = new UnawaitedMessages(endpoint);
    this.handshake = handshake;
    this.hasSession = sessionId !== undefined;
    const session: Headers = sessionId === undefined ? {} : { 'mcp-session-id': sessionId };
    this.#headers = { ...eraHeaders({ method: 'ping' }, handshake), ...session };
  }

  headers(request: ExchangeRequest): Headers {
    return this.handshake.era === 'modern' ? eraHeaders(request, this.handshake) : this.#headers;
  }

  /**
   * True when a refusal may mean that the backend no longer knows the session, or was replaced by one that requires a session or
   * speaks another era. The specification demands 404 for an unknown session; servers also answer 400 with an error that names no
   * request, or with the SDK's codes. A modern server answers 400 with a code of its era. A 404 with an error about this very
   * request, such as an unknown method, is its answer. Without a session, each error that may come after work is one.
   * Sources: MCP 2025-11-25 basic/transports#session-management; 2026-07-28 streamable-http#backward-compatibility; measured.
   */
  isLost({ status, error }: RefusedEnding, id: number): boolean {
    const { era } = this.handshake;
    const ownCode = numberMeant(error?.id) === id ? error?.error.code : undefined;
    if (status === 404) return this.hasSession && (ownCode === undefined || !ANSWER_CODES.has(ownCode));
    if (status !== 400 || error === undefined || era === 'bare') return false;
    if (MODERN_CODES.includes(error.error.code)) return era === 'legacy';
    if (ownCode !== undefined) return this.hasSession && SESSION_CODES.has(ownCode);
    return this.hasSession || !ANSWER_CODES.has(error.error.code);
  }

  /**
   * True for statuses without an error about this request that some servers answer for an unknown session,
   * although they may be about the call. Source: ADR 108.
   */
  mayBeLost({ status, error }: RefusedEnding, id: number): boolean {
    return (
      this.hasSession && MAY_BE_SESSION.has(status) && (error === undefined || numberMeant(error.id) !== id)
    );
  }

  /** True when the session is refused a ping with such a status, too. Waits at most LIMITS.backgroundMs. */
  async isRefused(): Promise<boolean> {
    const id = this.#endpoint.nextId();
    const status = await refusedStatus(
      this.#endpoint.clock,
      this.#posting(requestText(id, 'ping', undefined), 'ping'),
      id,
    );
    return status === 404 || MAY_BE_SESSION.has(status);
  }

  /** Notifies a legacy backend that a request is cancelled. Never rejects, waits at most LIMITS.backgroundMs. */
  async cancel(requestId: number, ownerId: string, reason?: string): Promise<void> {
    const body = messageText({ method: CANCELLED, params: cancellation(requestId, reason) });
    const waiting = this.#endpoint.waitingBytes;
    waiting?.add(ownerId, body.length);
    await sendUnawaited(this.#endpoint.clock, this.#posting(body, CANCELLED));
    waiting?.release(ownerId, body.length);
  }

  /**
   * Sends a notification, unless too many are under way. Throws QUEUE_FULL as Conversation.notify. Waits at most
   * LIMITS.backgroundMs.
   */
  notify(method: string, params: JsonObject, ownerId: string): void {
    this.#send({ method, params }, method, { isUrgent: false, ownerId });
  }

  /** Answers a request of the backend, unless too many answers are under way. Waits at most LIMITS.backgroundMs. */
  answer(id: JsonRpcId, answer: ClientAnswer, ownerId: string): void {
    this.#send({ id: idValue(id), ...answer }, '', { isUrgent: true, ownerId });
  }

  /** Deletes the session on the backend. Never rejects, takes at most LIMITS.backgroundMs. */
  async end(): Promise<void> {
    if (this.hasSession) await deleteSession(this.#endpoint, this.#headers, this.jar);
  }

  #send(
    message: object,
    method: string,
    sending: { readonly isUrgent: boolean; readonly ownerId: string },
  ): void {
    const body = messageText(message);
    void this.#unawaited.send(body, this.#posting(body, method), sending);
  }

  #posting(body: string, method: string): (answer: HttpAnswer) => void {
    return (answer) => this.#endpoint.post(body, this.headers({ method }), answer, { jar: this.jar });
  }
}

function messageText(message: object): string {
  return JSON.stringify({ jsonrpc: '2.0', ...message });
}

function deleteSession(endpoint: HttpEndpoint, headers: Headers, jar: CookieJar): Promise<void> {
  return sendUnawaited(endpoint.clock, (answer) => endpoint.delete(headers, answer, { jar }));
}

const MAY_BE_SESSION: ReadonlySet<number> = new Set([400, 401, 403, 410, 429]);
const SESSION_CODES: ReadonlySet<number> = new Set([RPC.badRequest, RPC.sessionNotFound]);
const MODERN_CODES: readonly number[] = [RPC.headerMismatch, RPC.missingCapability, RPC.unsupportedVersion];

/** Codes of errors of which the server has understood the request, and perhaps worked on it. */
const ANSWER_CODES: ReadonlySet<number> = new Set([
  RPC.methodNotFound,
  RPC.invalidParams,
  RPC.internalError,
  RPC.resourceNotFound,
]);
