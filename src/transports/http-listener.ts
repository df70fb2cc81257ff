// Keeps the stream open on which a legacy backend says what belongs to no request, such as list_changed. Not every
// server offers it, and its loss says nothing about the instance: it is opened again, at growing distances.
// What arrives is sorted in http-transport.ts. Source: MCP 2025-11-25 basic/transports#listening.

import type { BackendMessage } from '../domain/jsonrpc.ts';
import { LIMITS } from '../domain/limits.ts';
import { type AnswerSink, type Ending, HttpAnswer } from './http-answer.ts';
import type { HttpConnection } from './http-connection.ts';
import type { HttpSession } from './http-session.ts';

/** Takes what is heard. */
export type Hear = (message: BackendMessage) => void;

/** Waits between attempts, in ms. */
export interface ListenerWaits {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Listens from `start` to `stop`. Only for sessions of the legacy era; does nothing for others. */
export class HttpListener implements AnswerSink {
  readonly #connection: HttpConnection;
  readonly #session: HttpSession;
  readonly #hear: Hear;
  readonly #waits: ListenerWaits;
  #answer: HttpAnswer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #waitMs: number;
  #stopped = false;

  constructor(
    connection: HttpConnection,
    session: HttpSession,
    hear: Hear,
    waits: ListenerWaits = { firstMs: LIMITS.restartFirstMs, longestMs: LIMITS.restartLongestMs },
  ) {
    this.#connection = connection;
    this.#session = session;
    this.#hear = hear;
    this.#waits = waits;
    this.#waitMs = waits.firstMs;
  }

  /** Opens the stream of the present session, in place of one that is open. */
  start(): void {
    this.#drop();
    if (this.#stopped || !this.#session.hasSession) return;
    this.#answer = new HttpAnswer(this);
    this.#connection.listen(this.#session.headers({ method: '' }), this.#answer);
  }

  /** Closes the stream for good. */
  stop(): void {
    this.#stopped = true;
    this.#drop();
  }

  message(message: BackendMessage): void {
    // A server that has something to say is one worth coming back to soon.
    this.#waitMs = this.#waits.firstMs;
    this.#hear(message);
  }

  stray(): void {
    // An event that is no message; there is nobody to tell.
  }

  finished(ending: Ending): void {
    const retryMs = this.#answer?.retryMs ?? 0;
    this.#answer = undefined;
    if (!isWorthAnotherTry(ending)) return;
    const waitMs = Math.min(Math.max(this.#waitMs, retryMs), this.#waits.longestMs);
    this.#waitMs = Math.min(this.#waitMs * 2, this.#waits.longestMs);
    this.#timer = setTimeout(() => this.start(), waitMs).unref();
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#answer?.abort();
    this.#answer = undefined;
  }
}

/** False when the server does not offer the stream (405) or does not know us; a new session starts anew. */
function isWorthAnotherTry(ending: Ending): boolean {
  if (ending.kind === 'broken') return true;
  if (ending.kind === 'complete') return ending.streamed;
  return ending.status === 409 || ending.status === 429 || (ending.status >= 500 && ending.status !== 501);
}
