// The channel of a handshake over HTTP: which statuses are a refusal and which are a failure, and the session id of the answer.
// handshake.ts decides the order of requests.

import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import { type AnswerMessage, RPC, requestText } from '../../../domain/mcp/jsonrpc.ts';
import { type Era, INITIALIZED } from '../../../domain/mcp/mcp.ts';
import { type Clock, timeLimit } from '../../../domain/time/clock.ts';
import { eraHeaders, type Spoken } from '../../era-metadata.ts';
import type { HandshakeAnswer, HandshakeChannel, HandshakeErrorAnswer } from '../../handshake.ts';
import type { AnswerEnding, RefusedEnding } from '../answers/answer-ending.ts';
import type { HttpAnswer } from '../answers/http-answer.ts';
import { answeredStatus, answerMissing, explanationOf, wasCutOff } from '../answers/http-failures.ts';
import { ask } from '../background-requests.ts';
import type { Headers, HttpEndpoint } from '../http-endpoint.ts';
import { CookieJar } from './cookie-jar.ts';

interface HttpHandshakeOptions {
  readonly signal: AbortSignal;
  /** The longest wait for the first `server/discover`, which legacy servers may leave unanswered. */
  readonly discoverMs: number;
  /** The known era of the backend; a failure then says nothing about its era. */
  readonly known: Era | undefined;
  readonly clock: Clock;
}

/** The channel of one attempt. */
export class HttpHandshake implements HandshakeChannel {
  readonly #endpoint: HttpEndpoint;
  readonly #options: HttpHandshakeOptions;
  sessionId: string | undefined;
  /** Cookies that the answers have set, for the session. */
  readonly jar = new CookieJar();
  #isDiscovered = false;

  constructor(endpoint: HttpEndpoint, options: HttpHandshakeOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
  }

  async request(request: ExchangeRequest, spoken: Spoken): Promise<HandshakeAnswer> {
    const { method, params } = request;
    const id = this.#endpoint.nextId();
    const body = requestText(id, method, params);
    const headers = this.#headers(request, spoken);
    const { signal: ended } = this.#options;
    const signal = AbortSignal.any([ended, ...this.#timeoutFor(spoken.era)]);
    const asked = await ask((answer) => this.#post(body, headers, answer), id, signal);
    // Also the session of an answer that breaks off: the server keeps it until it is deleted.
    const isRefused =
      asked.kind === 'refused' || (asked.kind === 'answered' && asked.answer.kind === 'error');
    if (method === 'initialize' && !isRefused) this.sessionId = asked.sessionId;
    if (asked.kind !== 'answered') {
      if (signal.aborted && !ended.aborted) return none(`${method} was not answered`);
      return this.#interpret(asked, spoken.era);
    }
    const { answer } = asked;
    return answer.kind === 'error' ? errorFor(answer, this.#endpoint.textOf(answer.error)) : answer;
  }

  async initialized(protocolVersion: string): Promise<void> {
    const body = JSON.stringify({ jsonrpc: '2.0', method: INITIALIZED, params: {} });
    const headers = this.#headers({ method: INITIALIZED }, { era: 'legacy', protocolVersion });
    const send = (answer: HttpAnswer): void => this.#post(body, headers, answer);
    const asked = await ask(send, undefined, this.#options.signal);
    // A server that refuses the notification may still serve calls.
    if (asked.kind === 'broken') throw asked.failure;
  }

  #post(body: string, headers: Headers, answer: HttpAnswer): void {
    this.#endpoint.post(body, headers, answer, { jar: this.jar });
  }

  /**
   * The signal of the timeout of an attempt. Only the first `server/discover` has one: a modern server that was slow gets it
   * again after it refused `initialize`.
   */
  #timeoutFor(era: Era): AbortSignal[] {
    if (era !== 'modern' || this.#isDiscovered) return [];
    this.#isDiscovered = true;
    return [timeLimit(this.#options.clock, this.#options.discoverMs)];
  }

  #headers(request: ExchangeRequest, spoken: Spoken): Headers {
    const headers = eraHeaders(request, spoken);
    if (spoken.era === 'legacy' && this.sessionId !== undefined) headers['mcp-session-id'] = this.sessionId;
    return headers;
  }

  /**
   * Interprets an HTTP answer without a JSON-RPC answer: the backend does not know the method, or the handshake fails.
   * Missing authorization and broken proxies say nothing about an era, so the handshake fails; but a legacy server may close the
   * connection at `server/discover`.
   * Source: MCP 2026-07-28 basic/transports/streamable-http#backward-compatibility.
   */
  #interpret(ending: AnswerEnding, era: Era): HandshakeAnswer {
    if (ending.kind === 'broken') {
      if (era === 'modern' && wasCutOff(ending.failure)) return none('server/discover was not answered');
      throw ending.failure;
    }
    if (ending.kind === 'refused') {
      if (this.#isFailure(ending)) throw answeredStatus(ending);
      if (ending.error === undefined) return refusedWith(ending);
      const { status, waitMs } = ending;
      return { ...errorFor(ending.error, ending.text), status, waitMs };
    }
    // A server may answer a method of another era in any way; a request in its own era may still succeed.
    if (era === 'modern' || this.#options.known === 'modern')
      return none(`POST ${this.#endpoint.path} ${ending.detail}`);
    throw answerMissing(ending.detail);
  }

  /** A server of known era has no reason to answer an unknown method with 5xx. */
  #isFailure({ status, error }: RefusedEnding): boolean {
    if (NO_EVIDENCE.has(status) || status < 400) return true;
    return this.#options.known !== undefined && status >= 500 && error?.error.code !== RPC.methodNotFound;
  }
}

const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 402, 403, 407, 410, 429, 451, 502, 503, 504]);

function none(detail: string): HandshakeAnswer {
  return { kind: 'none', detail };
}

function errorFor(answer: Extract<AnswerMessage, { kind: 'error' }>, said = ''): HandshakeErrorAnswer {
  return { kind: 'error', error: answer.error, said };
}

function refusedWith(refused: RefusedEnding): HandshakeAnswer {
  const { status, asked, waitMs, text } = refused;
  const words = explanationOf(refused);
  const detail = `${asked} was answered with HTTP ${status}${words === '' ? '' : ` (${words})`}`;
  return { kind: 'none', detail, status, waitMs, ...(status === 400 ? { said: text } : {}) };
}
