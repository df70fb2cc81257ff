// Keeps a stream open on which a legacy backend sends messages that belong to no request, such as list_changed. Not every server
// offers one, and losing it does not make the instance unhealthy: the stream is reopened at growing intervals, after the last
// event. http-conversation.ts sorts the messages. Source: MCP 2025-11-25 basic/transports#listening.

import { LIMITS } from '../../domain/limits.ts';
import type { BackendMessage } from '../../domain/mcp/jsonrpc.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { type AnswerEnding, mayReopen } from './answers/answer-ending.ts';
import { type AnswerSink, HttpAnswer } from './answers/http-answer.ts';
import type { Headers } from './http-endpoint.ts';
import type { HttpSession } from './sessions/http-session.ts';

export interface EventStreamSink {
  readonly session: HttpSession;
  receive(message: BackendMessage): void;
  sessionLost(): void;
  /** Messages may have been missed; the stream is open again, or the server offers none in the session that replaced another. */
  resumed(): void;
}

/** The longest wait for a stream that is being opened. */
const STREAM_OPENS_MS = 250;

/** Waits before the stream is opened again. */
const WAITS: { readonly firstMs: number; readonly longestMs: number } = {
  firstMs: LIMITS.restartFirstMs,
  longestMs: LIMITS.restartLongestMs,
};

/** Listens from `start` to `stop`, any number of times. Only in sessions of the legacy era; does nothing in others. */
export class BackendEventStream implements AnswerSink {
  readonly #send: (headers: Headers, answer: HttpAnswer) => void;
  readonly #sink: EventStreamSink;
  readonly #clock: Clock;
  readonly #waits: typeof WAITS;
  #answer: HttpAnswer | undefined;
  #cancelWait: (() => void) | undefined;
  #waitMs: number;
  /** The id of the event after which the next stream continues; undefined when it begins at its start. */
  #lastEventId: string | undefined;
  #isListening = false;
  #wasOpen = false;
  /** True when the last stream ended without an event after which the next one could continue, or with its session. */
  #hasMissed = false;
  #opening: PromiseWithResolvers<void> | undefined;
  #cancelOpening: (() => void) | undefined;

  /** `send` requests the stream. */
  constructor(
    send: (headers: Headers, answer: HttpAnswer) => void,
    sink: EventStreamSink,
    clock: Clock,
    waits = WAITS,
  ) {
    this.#send = send;
    this.#sink = sink;
    this.#clock = clock;
    this.#waits = waits;
    this.#waitMs = waits.firstMs;
  }

  /** Resolves when the stream that is being opened is open or has failed; undefined when none is being opened. */
  get untilListening(): Promise<void> | undefined {
    return this.#opening?.promise;
  }

  /** Opens the stream, unless it is open; after a stop it continues after the last event. */
  start(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#open();
  }

  /** Listens in a session that replaced another one, from its beginning. */
  restart(): void {
    this.#closeStream();
    this.#lastEventId = undefined;
    this.#hasMissed = true;
    if (this.#isListening) this.#open();
  }

  stop(): void {
    this.#isListening = false;
    this.#closeStream();
  }

  began(): void {
    const isOpen = this.#answer?.status === 200;
    this.#wasOpen ||= isOpen;
    this.#endOpening();
    if (isOpen) this.#reportMissed();
  }

  message(message: BackendMessage): void {
    // A server that sends messages is reconnected to soon.
    this.#waitMs = this.#waits.firstMs;
    this.#sink.receive(message);
  }

  finished(ending: AnswerEnding): void {
    const retryMs = this.#answer?.retryMs;
    this.#keepEventId();
    this.#endOpening();
    if (isSessionLost(ending, this.#wasOpen && this.#lastEventId === undefined)) {
      this.#sink.sessionLost();
      return;
    }
    if (!mayReopen(ending)) {
      // The server may only not know the event: tries once more without its id.
      if (this.#lastEventId === undefined) {
        this.#reportMissed();
        return;
      }
      this.#lastEventId = undefined;
    }
    this.#hasMissed ||= this.#wasOpen && this.#lastEventId === undefined;
    this.#cancelWait = this.#clock.background.alarm(this.#nextWaitMs(retryMs), () => this.#open());
  }

  #reportMissed(): void {
    if (!this.#hasMissed) return;
    this.#hasMissed = false;
    this.#sink.resumed();
  }

  /** A server that names a wait wants to be polled, so there is no back-off. */
  #nextWaitMs(retryMs: number | undefined): number {
    if (retryMs !== undefined)
      return Math.min(Math.max(retryMs, this.#waits.firstMs), LIMITS.refusedLongestMs);
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(waitMs * 2, this.#waits.longestMs);
    return waitMs;
  }

  #open(): void {
    const { session } = this.#sink;
    if (!session.hasSession) return;
    const headers = session.headers({ method: '' });
    const resumed =
      this.#lastEventId === undefined ? headers : { ...headers, 'last-event-id': this.#lastEventId };
    this.#answer = new HttpAnswer(this);
    this.#opening ??= Promise.withResolvers();
    this.#cancelOpening = this.#clock.background.alarm(STREAM_OPENS_MS, () => this.#endOpening());
    this.#send(resumed, this.#answer);
  }

  #endOpening(): void {
    this.#cancelOpening?.();
    this.#opening?.resolve();
    this.#opening = undefined;
  }

  #closeStream(): void {
    this.#cancelWait?.();
    this.#answer?.abort();
    this.#keepEventId();
    this.#endOpening();
  }

  #keepEventId(): void {
    this.#lastEventId = this.#answer?.lastEventId ?? this.#lastEventId;
    this.#answer = undefined;
  }
}

/** A 404 without JSON-RPC may come from a server that never offered the stream, or does not know the event. */
function isSessionLost(ending: AnswerEnding, isOffered: boolean): boolean {
  return ending.kind === 'refused' && ending.status === 404 && (isOffered || ending.error !== undefined);
}
