// Keeps the stream open on which a legacy backend sends messages that belong to no request, such as list_changed. Not every
// server offers it, and its loss says nothing about the instance: it is opened again, at growing intervals, from where
// it broke off. http-conversation.ts sorts the messages. Source: MCP 2025-11-25 basic/transports#listening.

import type { BackendMessage } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AnswerEnding, type AnswerSink, HttpAnswer } from './http-answer.ts';
import type { Headers } from './http-connection.ts';
import type { HttpSession } from './http-session.ts';

/** The receiver of what a listener gets. */
export interface MessageSink {
  receive(message: BackendMessage): void;
  /** The backend does not know the session any more. */
  forgotten(): void;
}

/** Asks for the stream, by one of the ways of HttpConnection. */
export type Send = (headers: Headers, answer: HttpAnswer) => void;

/** Waits between attempts, in ms. */
export interface ListenerWaits {
  readonly firstMs: number;
  readonly longestMs: number;
}

const WAITS: ListenerWaits = { firstMs: LIMITS.restartFirstMs, longestMs: LIMITS.restartLongestMs };

/** Listens from `start` to `stop`, any number of times. Only in sessions of the legacy era; does nothing in others. */
export class HttpListener implements AnswerSink {
  readonly #send: Send;
  readonly #session: HttpSession;
  readonly #sink: MessageSink;
  readonly #waits: ListenerWaits;
  #answer: HttpAnswer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #waitMs: number;
  #lastEventId = '';
  #isOn = false;
  /** Callbacks that wait for the stream while it is being opened. */
  #waiting: Set<() => void> | undefined;

  constructor(send: Send, session: HttpSession, sink: MessageSink, waits: ListenerWaits = WAITS) {
    this.#send = send;
    this.#session = session;
    this.#sink = sink;
    this.#waits = waits;
    this.#waitMs = waits.firstMs;
  }

  /** Opens the stream, unless it is open or about to be; after a stop from where it was left. */
  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#open();
  }

  /** Listens in a session that replaces another one; messages of the old session are history. */
  startAnew(): void {
    this.#drop();
    this.#lastEventId = '';
    if (this.#isOn) this.#open();
  }

  /** Closes the stream. */
  stop(): void {
    this.#isOn = false;
    this.#drop();
  }

  /**
   * Calls back once the stream is open or will not be, at the latest after `longestMs`; undefined, and no call, when there
   * is nothing to wait for. The returned function calls it off.
   */
  whenSettled(settled: () => void, longestMs: number): (() => void) | undefined {
    const waiting = this.#waiting;
    if (waiting === undefined) return undefined;
    const once = (): void => {
      clearTimeout(timer);
      if (waiting.delete(once)) settled();
    };
    const timer = setTimeout(once, longestMs);
    waiting.add(once);
    return () => {
      clearTimeout(timer);
      waiting.delete(once);
    };
  }

  began(): void {
    this.#settle();
  }

  message(message: BackendMessage): void {
    // A server that sends messages is worth a soon reconnection.
    this.#waitMs = this.#waits.firstMs;
    this.#sink.receive(message);
  }

  unmatched(): void {
    // An event that is no message; it has no receiver.
  }

  finished(ending: AnswerEnding): void {
    const retryMs = this.#answer?.retryMs;
    this.#takeEventId();
    this.#settle();
    if (isForgotten(ending)) {
      this.#sink.forgotten();
      return;
    }
    if (!isWorthAnotherTry(ending)) {
      // Perhaps the server does not know the event, and not the stream.
      if (this.#lastEventId === '') return;
      this.#lastEventId = '';
    }
    this.#timer = setTimeout(() => this.#open(), this.#nextWaitMs(retryMs)).unref();
  }

  /** The wait that the server asks for is kept. A server that names a wait wants to be polled, without a back-off. */
  #nextWaitMs(retryMs: number | undefined): number {
    if (retryMs !== undefined) return Math.min(Math.max(retryMs, this.#waits.firstMs), LIMITS.callLongestMs);
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(waitMs * 2, this.#waits.longestMs);
    return waitMs;
  }

  #open(): void {
    if (!this.#session.hasSession) return;
    const headers = this.#session.headers({ method: '' });
    const resumed = this.#lastEventId === '' ? headers : { ...headers, 'last-event-id': this.#lastEventId };
    this.#answer = new HttpAnswer(this);
    this.#waiting ??= new Set();
    this.#send(resumed, this.#answer);
  }

  #settle(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const settled of waiting ?? []) settled();
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#answer?.abort();
    this.#takeEventId();
    this.#settle();
  }

  #takeEventId(): void {
    this.#lastEventId = this.#answer?.lastEventId || this.#lastEventId;
    this.#answer = undefined;
  }
}

/** A 404 with JSON-RPC comes from the MCP server, and not from a server without this path. */
function isForgotten(ending: AnswerEnding): boolean {
  return ending.kind === 'refused' && ending.status === 404 && ending.error !== undefined;
}

/** False when the server does not offer the stream (405) or does not know the session; a new session starts anew. */
function isWorthAnotherTry(ending: AnswerEnding): boolean {
  if (ending.kind === 'broken') return true;
  if (ending.kind === 'complete') return ending.streamed;
  return ending.status === 409 || ending.status === 429 || (ending.status >= 500 && ending.status !== 501);
}
