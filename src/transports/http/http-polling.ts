// Resumes the event stream of a call that ended before the answer: requests the rest after the last event id, until the answer is
// there, the backend no longer knows the stream, or its address refuses connections. A backend that ends a stream asks to be
// polled; after a broken connection the instance should be probed as well.
// Source: MCP 2025-11-25 basic/transports#resumability, SEP-1699. The caller sets the deadline.

import { LIMITS } from '../../domain/limits.ts';
import { type AnswerEnding, type AnswerSink, HttpAnswer } from './http-answer.ts';
import type { HttpConnection } from './http-connection.ts';
import type { HttpSession } from './http-session.ts';

/** The call. `finished`: polling has ended without the answer. */
export interface PollingSink extends AnswerSink {
  /** The backend ended the stream, which is requested again after the wait that the backend asked for, in ms. */
  interrupted(retryMs: number | undefined): void;
  /** The connection broke, or the backend answered 5xx; the stream is requested again nevertheless. */
  suspected(): void;
}

/** Where the stream ended. */
export interface Interrupted {
  readonly lastEventId: string;
  readonly retryMs: number | undefined;
}

/** Wait when the backend names none, as in the SDKs. */
const USUAL_WAIT_MS = 1_000;
/** Shortest wait after a stream without a new event; doubled each time. */
const SHORTEST_WAIT_MS = 100;
/** Attempts in a row without a new event: no connection, an error of the server, an empty stream. */
const MAX_EMPTY_ATTEMPTS = 8;

/** Polls for one call. */
export class HttpPolling implements AnswerSink {
  readonly #connection: HttpConnection;
  readonly #session: HttpSession;
  readonly #sink: PollingSink;
  #lastEventId: string;
  #retryMs: number | undefined;
  #answer: HttpAnswer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #emptyAttempts = 0;

  constructor(connection: HttpConnection, session: HttpSession, sink: PollingSink, from: Interrupted) {
    this.#connection = connection;
    this.#session = session;
    this.#sink = sink;
    this.#lastEventId = from.lastEventId;
    this.#retryMs = from.retryMs;
  }

  /** The call has ended without the answer. */
  abort(): void {
    clearTimeout(this.#timer);
    this.#answer?.abort();
  }

  /** The answer has come: the stream may end by itself. */
  dismiss(): void {
    this.#answer?.dismiss();
  }

  message: AnswerSink['message'] = (message) => {
    this.#emptyAttempts = 0;
    this.#sink.message(message);
  };

  unmatched(): void {
    this.#sink.unmatched();
  }

  finished(ending: AnswerEnding): void {
    const { lastEventId = '', retryMs } = this.#answer ?? {};
    this.#answer = undefined;
    if (lastEventId !== '' && lastEventId !== this.#lastEventId) {
      this.#emptyAttempts = 0;
      this.#lastEventId = lastEventId;
    }
    this.#retryMs = retryMs ?? this.#retryMs;
    this.#emptyAttempts += 1;
    if (this.#emptyAttempts > MAX_EMPTY_ATTEMPTS || !mayResume(ending)) this.#sink.finished(ending);
    else this.waitAfter(ending);
  }

  /** Requests the rest after a wait. The stream ended in this way. */
  waitAfter(ending: AnswerEnding): void {
    const leastMs = this.#emptyAttempts === 0 ? 0 : SHORTEST_WAIT_MS * 2 ** (this.#emptyAttempts - 1);
    const waitMs = Math.min(Math.max(this.#retryMs ?? USUAL_WAIT_MS, leastMs), LIMITS.callLongestMs);
    this.#timer = setTimeout(() => this.#ask(), waitMs).unref();
    // Last, because the sink may abort the polling.
    if (ending.kind === 'complete') this.#sink.interrupted(this.#retryMs);
    else if (isSuspicious(ending)) this.#sink.suspected();
  }

  #ask(): void {
    const headers = { ...this.#session.headers({ method: '' }), 'last-event-id': this.#lastEventId };
    this.#answer = new HttpAnswer(this);
    this.#connection.get(headers, this.#answer);
  }
}

/** True when the address of the backend refuses connections. */
export function isUnreachable(ending: AnswerEnding): ending is Broken {
  return ending.kind === 'broken' && ending.failure.facts.unreachable === true;
}

type Broken = Extract<AnswerEnding, { kind: 'broken' }>;

function isSuspicious(ending: AnswerEnding): boolean {
  if (ending.kind === 'broken') return ending.failure.facts.suspicious === true;
  return ending.kind === 'refused' && ending.status >= 500;
}

/** True when the stream may be resumed later. */
function mayResume(ending: AnswerEnding): boolean {
  if (ending.kind === 'broken') return !isUnreachable(ending);
  if (ending.kind === 'complete') return ending.streamed;
  return ending.status === 409 || ending.status === 429 || ending.status >= 500;
}
