// The rest of an event stream that ended before the answer of its call: requested after the last event id, again and
// again, until the answer is there, the backend no longer knows the stream, or its address refuses connections.
// Source: MCP 2025-11-25 basic/transports#resumability, SEP-1699.

import { type GatewayError, perhapsDelivered } from '../../domain/errors/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { type AnswerEnding, mayReopen } from './answers/answer-ending.ts';
import type { HttpAnswer } from './answers/http-answer.ts';

/** Wait for the rest of a stream when the backend names none, as in the SDKs. */
const USUAL_WAIT_MS = 1_000;
/** The shortest wait after a stream without a new event; doubled each time. */
const MIN_WAIT_MS = 100;
/** Attempts in a row without a new event: no connection, an error of the server, an empty stream. */
const MAX_EMPTY_ATTEMPTS = 8;

/** The methods of the call whose stream is polled. */
interface PolledCall {
  readonly clock: Clock;
  /** Requests the events of the stream after this one. */
  poll(lastEventId: string): void;
  /** The stream ended, and the backend wants to be polled. */
  interrupted(retryMs: number | undefined): void;
  fail(error: GatewayError): void;
  /** The server answers that it does not know the stream. */
  streamUnknown(): void;
}

type LastAnswer = Pick<HttpAnswer, 'lastEventId' | 'retryMs'>;

/** The polling of one call, until its answer or `end`. */
export class StreamPolling {
  readonly #call: PolledCall;
  /** The failure with which the first stream ended. */
  readonly #failure: GatewayError;
  #lastEventId: string;
  #retryMs: number | undefined;
  #emptyAttempts = 0;
  #cancelWait: (() => void) | undefined;

  constructor(call: PolledCall, first: LastAnswer & { readonly lastEventId: string }, failure: GatewayError) {
    this.#call = call;
    this.#lastEventId = first.lastEventId;
    this.#retryMs = first.retryMs;
    this.#failure = failure;
  }

  /** Requests the rest of the stream after a wait. `ended`: how the stream ended. */
  start(ended: AnswerEnding): void {
    const leastMs = this.#emptyAttempts === 0 ? 0 : MIN_WAIT_MS * 2 ** (this.#emptyAttempts - 1);
    const waitMs = Math.min(Math.max(this.#retryMs ?? USUAL_WAIT_MS, leastMs), LIMITS.callHardBoundMs);
    this.#cancelWait = this.#call.clock.background.alarm(waitMs, () => this.#call.poll(this.#lastEventId));
    // Last, because the caller may unsubscribe.
    if (ended.kind === 'complete') this.#call.interrupted(this.#retryMs);
  }

  noteMessage(): void {
    this.#emptyAttempts = 0;
  }

  /** The stream that was requested has ended, too. */
  ended(answer: LastAnswer | undefined, ended: AnswerEnding): void {
    const { lastEventId, retryMs } = answer ?? {};
    if (lastEventId !== undefined && lastEventId !== this.#lastEventId) {
      this.#emptyAttempts = 0;
      this.#lastEventId = lastEventId;
    }
    this.#retryMs = retryMs ?? this.#retryMs;
    this.#emptyAttempts += 1;
    // No server listens there any more, or the gateway broke off the answer, which would come again.
    const isFinal = ended.kind === 'broken' && ended.failure.facts.health !== 'suspicious';
    if (this.#emptyAttempts <= MAX_EMPTY_ATTEMPTS && !isFinal && mayReopen(ended)) this.start(ended);
    // A 400 is different: servers answer it for an unknown event, too.
    else if (ended.kind === 'refused' && ended.status === 404) this.#call.streamUnknown();
    else this.#call.fail(isFinal ? perhapsDelivered(ended.failure) : this.#failure);
  }

  end(): void {
    this.#cancelWait?.();
  }
}
