// The channel of a handshake over HTTP: which statuses are a refusal and which a failure, and the session id that comes back.
// handshake.ts decides the order of requests. `ask` awaits one answer, for all that is off the hot path: handshakes and the delete
// of a session. Calls do not use it (http-call.ts).

import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { ExchangeRequest } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { AnswerMessage } from '../../domain/jsonrpc.ts';
import { RPC, requestText } from '../../domain/jsonrpc.ts';
import { type Era, META, type Peer } from '../../domain/mcp.ts';
import type { HandshakeAnswer, HandshakeChannel } from '../handshake.ts';
import { ECHOES, eraHeaders, isEcho } from '../handshake.ts';
import type { AnswerEnding, RefusedEnding } from './http-answer.ts';
import { HttpAnswer } from './http-answer.ts';
import type { Headers, HttpConnection } from './http-connection.ts';
import { answeredStatus, answerMissing, connectionClosed } from './http-failures.ts';

export interface HttpHandshakeOptions {
  /** Ends the waiting. */
  readonly signal: AbortSignal;
  /** A server that does not answer `server/discover` in this time counts as one that does not know it. */
  readonly discoverMs: number;
  /** The same of `initialize`. Default: it is waited for. */
  readonly initializeMs?: number | undefined;
  /** The known era of the backend; its failures are then no sign of another era. */
  readonly known: Era | undefined;
}

/** One attempt to shake hands; make a new one for the next. */
export class HttpHandshake implements HandshakeChannel {
  readonly #connection: HttpConnection;
  readonly #options: HttpHandshakeOptions;
  #sessionId: string | undefined;
  #legacyVersion = '';
  #initializeStatus: number | undefined;

  constructor(connection: HttpConnection, options: HttpHandshakeOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** Session id given with the answer to `initialize`, if any. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** The status with which `initialize` was refused, if it was. */
  get initializeStatus(): number | undefined {
    return this.#initializeStatus;
  }

  /** `patience` ends the wait for this answer, too. */
  async request(request: ExchangeRequest, era: Era, patience?: AbortSignal): Promise<HandshakeAnswer> {
    const id = this.#connection.nextId();
    const body = requestText(id, request.method, request.params);
    const headers = this.#headers(request, era);
    const patient = [patience, this.#patienceFor(request, era)].filter((one) => one !== undefined);
    const signal = AbortSignal.any([this.#options.signal, ...patient]);
    const { method } = request;
    const asked = await ask((answer) => this.#connection.post(body, headers, answer), { id, method }, signal);
    if (asked.kind !== 'answered') {
      if (asked.kind === 'refused' && method === 'initialize') this.#initializeStatus = asked.status;
      if (signal.aborted && !this.#options.signal.aborted) return this.#silence(method);
      return this.#explain(asked, era);
    }
    if (method === 'initialize' && asked.answer.kind === 'result') {
      this.#sessionId = asked.sessionId;
      const result = asked.answer.result.value;
      const version = isJsonObject(result) ? result.protocolVersion : undefined;
      this.#legacyVersion = typeof version === 'string' ? version : '';
    }
    return asked.answer;
  }

  async notify(method: string, params: JsonObject): Promise<void> {
    const body = JSON.stringify({ jsonrpc: '2.0', method, params });
    const headers = this.#headers({ method }, 'legacy');
    const asked = await ask(
      (answer) => this.#connection.post(body, headers, answer),
      undefined,
      this.#options.signal,
    );
    // A server that refuses the notification may still serve; the first call will tell.
    if (asked.kind === 'broken') throw asked.failure;
  }

  /** A backend that does not answer a method that it knows is in trouble, which says nothing about an era. */
  #silence(method: string): HandshakeAnswer {
    const lack = `${method} was not answered`;
    if (this.#options.known !== 'modern' || method === 'initialize') return none(lack);
    throw backendUnavailable(lack, { delivered: 'unknown', suspicious: true });
  }

  #patienceFor({ method }: ExchangeRequest, era: Era): AbortSignal | undefined {
    const { discoverMs, initializeMs } = this.#options;
    const legacyMs = method === 'initialize' ? initializeMs : undefined;
    const patienceMs = era === 'modern' ? discoverMs : legacyMs;
    return patienceMs === undefined ? undefined : AbortSignal.timeout(patienceMs);
  }

  #headers(request: ExchangeRequest, era: Era): Headers {
    const headers = eraHeaders(request, { era, protocolVersion: this.#versionOf(request, era) });
    if (era === 'legacy' && this.#sessionId !== undefined) headers['mcp-session-id'] = this.#sessionId;
    return headers;
  }

  #versionOf(request: ExchangeRequest, era: Era): Peer['protocolVersion'] {
    if (era === 'legacy') return this.#legacyVersion;
    const meta = request.params?._meta;
    const version = isJsonObject(meta) ? meta[META.protocolVersion] : undefined;
    return typeof version === 'string' ? version : '';
  }

  /**
   * What an HTTP answer without the JSON-RPC answer says about the method: that the backend does not know it, or nothing.
   * Missing authorization and broken proxies are no evidence of an era, so they fail.
   * Source: MCP 2026-07-28 basic/transports/streamable-http#backward-compatibility.
   */
  #explain(ending: AnswerEnding, era: Era): HandshakeAnswer {
    if (ending.kind === 'broken') throw ending.failure;
    if (ending.kind === 'refused') {
      const { status, error } = ending;
      if (this.#isFailure(ending)) throw answeredStatus(status);
      return error ?? none(`POST ${this.#connection.path} was answered with HTTP ${status}`);
    }
    // After any answer of a server to a method of another era, a request in its own era may still succeed.
    if (era === 'modern' || this.#options.known === 'modern')
      return none(`POST ${this.#connection.path} ${ending.lack}`);
    throw answerMissing(ending.lack);
  }

  /** A known server has no reason to fail at an unknown method, and answers with an error if it does. */
  #isFailure({ status, error }: RefusedEnding): boolean {
    if (NO_EVIDENCE.has(status) || status < 400) return true;
    return this.#options.known !== undefined && status >= 500 && error?.error.code !== RPC.methodNotFound;
  }
}

const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 403, 407, 429, 502, 503, 504]);

function none(lack: string): HandshakeAnswer {
  return { kind: 'none', lack };
}

/** The answer to the request's id, or the ending of the HTTP answer without it. */
export type SentRequest = (AnswerEnding | { readonly kind: 'answered'; readonly answer: AnswerMessage }) & {
  readonly sessionId: string | undefined;
};

/**
 * Sends by calling `send` and resolves with the message that answers `request`, or with the end of the HTTP answer; for
 * a notification there is no request. Never rejects: when the signal ends the wait, or the request itself comes back, it
 * is aborted and the outcome is `broken`.
 */
export function ask(
  send: (answer: HttpAnswer) => void,
  request: { readonly id: number; readonly method: string } | undefined,
  signal: AbortSignal,
): Promise<SentRequest> {
  return new Promise((resolve) => {
    const settle = (outcome: AnswerEnding | { kind: 'answered'; answer: AnswerMessage }): void => {
      signal.removeEventListener('abort', withdraw);
      resolve({ ...outcome, sessionId: answer.sessionId });
    };
    const answer = new HttpAnswer({
      message(message) {
        if (request === undefined || message.kind === 'notification') return;
        if (message.kind === 'request') {
          if (!isEcho(message, request)) return;
          answer.abort();
          settle({ kind: 'broken', failure: backendUnavailable(ECHOES, { delivered: 'unknown' }) });
        } else if (message.id === request.id) {
          settle({ kind: 'answered', answer: message });
          answer.dismiss();
        }
      },
      unmatched() {
        // The ending says what is missing.
      },
      finished: settle,
    });
    const withdraw = (): void => {
      const failure = connectionClosed('the gateway stopped waiting for its answer', answer.sent);
      answer.abort();
      settle({ kind: 'broken', failure });
    };
    if (signal.aborted) return withdraw();
    signal.addEventListener('abort', withdraw, { once: true });
    send(answer);
  });
}
