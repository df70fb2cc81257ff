// Keeps the stream open on which a legacy backend says what belongs to no request, such as list_changed. Not every
// server offers it, and its loss says nothing about the instance: it is opened again, at growing distances, from where
// it broke off. What arrives is sorted in http-conversation.ts. Source: MCP 2025-11-25 basic/transports#listening.

import type { BackendMessage } from '../../domain/jsonrpc.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type AnswerSink, type Ending, HttpAnswer } from './http-answer.ts';
import type { Headers } from './http-connection.ts';
import type { HttpSession } from './http-session.ts';

/** The receiver of what a listener gets. */
export interface Ear {
  heard(message: BackendMessage): void;
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

/** Listens from `start` to `stop`, as often as one likes. Only in sessions of the legacy era; does nothing in others. */
export class HttpListener implements AnswerSink {
  readonly #send: Send;
  readonly #session: HttpSession;
  readonly #ear: Ear;
  readonly #waits: ListenerWaits;
  #answer: HttpAnswer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #waitMs: number;
  #lastEventId = '';
  #isOn = false;
  /** Callbacks that wait for the stream while it is being opened. */
  #waiting: Set<() => void> | undefined;

  constructor(send: Send, session: HttpSession, ear: Ear, waits: ListenerWaits = WAITS) {
    this.#send = send;
    this.#session = session;
    this.#ear = ear;
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
    // A server that has something to say is one worth coming back to soon.
    this.#waitMs = this.#waits.firstMs;
    this.#ear.heard(message);
  }

  stray(): void {
    // An event that is no message; it has no receiver.
  }

  finished(ending: Ending): void {
    const retryMs = this.#answer?.retryMs;
    this.#takeEventId();
    this.#settle();
    if (isForgotten(ending)) {
      this.#ear.forgotten();
      return;
    }
    if (!isWorthAnotherTry(ending)) {
      // Perhaps it is the event that the server does not know, and not the stream.
      if (this.#lastEventId === '') return;
      this.#lastEventId = '';
    }
    this.#timer = setTimeout(() => this.#open(), this.#nextWaitMs(retryMs)).unref();
  }

  /** What the server asks for is honoured. One that says when to come back wants to be polled, and is not backed off from. */
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

/** A 404 that speaks JSON-RPC is the word of the server, and not of one that has nothing under this path. */
function isForgotten(ending: Ending): boolean {
  return ending.kind === 'refused' && ending.status === 404 && ending.error !== undefined;
}

/** False when the server does not offer the stream (405) or does not know us; a new session starts anew. */
function isWorthAnotherTry(ending: Ending): boolean {
  if (ending.kind === 'broken') return true;
  if (ending.kind === 'complete') return ending.streamed;
  return ending.status === 409 || ending.status === 429 || (ending.status >= 500 && ending.status !== 501);
}
