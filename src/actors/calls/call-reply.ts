// Connects the caller of one exchange to a transport: passes every event on synchronously, past all mailboxes, and counts the
// exchange and its outcome. The call decides what a failure means.

import type { Observable, Subscriber, Subscription } from 'rxjs';
import type { CallVerdict } from '../../balancing/outliers.ts';
import { type ClientReply, type ServerRequest, serverRequest } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { asGatewayError, GatewayError } from '../../domain/errors.ts';
import type { ExchangeOutcome } from '../../domain/events.ts';
import { type ExchangeEvent, isFinal } from '../../domain/exchange.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import type { CallCounter } from '../instances/call-counter.ts';

/** How an exchange ended, for the instance's statistics. */
export interface ExchangeEnding {
  readonly outcome: ExchangeOutcome;
  readonly durationMs: number;
  readonly error: GatewayError | undefined;
}

/**
 * What the end of an exchange says about its backend. Without an answer it has failed only if the error is the backend's: not
 * when it was cancelled, refused before anything was sent, or too large. Source: ADR 39.
 */
export function callVerdictOf({ outcome, error }: Pick<ExchangeEnding, 'outcome' | 'error'>): CallVerdict {
  if (outcome === 'result' || outcome === 'error') return 'answered';
  return error?.facts.suspicious || error?.facts.unreachable ? 'failed' : 'neither';
}

/** Answered exactly once: by the events of a transport, by a refusal, or not at all after the caller left. */
export class CallReply {
  readonly #subscriber: Subscriber<ExchangeEvent>;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #calls: CallCounter;
  readonly #ownerId: string;
  readonly #paused: ((isPaused: boolean) => void) | undefined;
  #source: Subscription | undefined;
  #onMessage: (() => void) | undefined;
  #outcome: ExchangeOutcome = 'cancelled';
  #error: GatewayError | undefined;
  /** Questions that the client has not answered. */
  #unanswered = 0;
  #isPaused = false;

  /** Counts in `calls` from now on, until `end`. `paused`: see ExchangeHooks of instance-ref.ts. */
  constructor(
    subscriber: Subscriber<ExchangeEvent>,
    now: () => number,
    calls: CallCounter,
    ownerId: string,
    paused?: (isPaused: boolean) => void,
  ) {
    this.#subscriber = subscriber;
    this.#now = now;
    this.#calls = calls;
    this.#ownerId = ownerId;
    this.#paused = paused;
    this.#startedAt = now();
    calls.begin(ownerId);
  }

  /** Passes the events of a transport to the caller. `onMessage` is called at every message. Default: not called. */
  follow(source: Observable<ExchangeEvent>, onMessage?: () => void): void {
    this.#onMessage = onMessage;
    this.#source = source.subscribe(this);
  }

  /** Messages after the answer are not passed on. */
  next(event: ExchangeEvent): void {
    if (this.#isAnswered) return;
    this.#onMessage?.();
    if (isFinal(event)) this.#outcome = event.kind;
    if (event.kind === 'request') this.#ask(event);
    else this.#subscriber.next(event);
  }

  error(thrown: unknown): void {
    if (this.#isAnswered) {
      this.#subscriber.complete();
      return;
    }
    this.#error = callFailureOf(thrown);
    this.#outcome = 'failed';
    this.#subscriber.error(this.#error);
  }

  complete(): void {
    if (this.#isAnswered) this.#subscriber.complete();
    else
      this.error(
        backendUnavailable('it ended without an answer', { delivered: 'unknown', suspicious: true }),
      );
  }

  /**
   * Ends what is still running on the backend; called in the teardown of the caller's subscription. `overdue` is given
   * when the gateway ends it, not its caller: then the exchange has failed.
   */
  end(overdue?: GatewayError): ExchangeEnding {
    this.#source?.unsubscribe();
    this.#resume();
    const isOverdue = overdue !== undefined && this.#outcome === 'cancelled';
    const ending: ExchangeEnding = {
      outcome: isOverdue ? 'failed' : this.#outcome,
      durationMs: this.#now() - this.#startedAt,
      error: isOverdue ? overdue : this.#error,
    };
    this.#calls.end(this.#ownerId, ending);
    return ending;
  }

  /** The question is passed on before the freed capacity is announced: the client may answer at once. */
  #ask(request: ServerRequest): void {
    this.#isPaused ||= this.#calls.pause(this.#ownerId);
    if (!this.#isPaused) {
      request.answer(TOO_MANY_WAIT);
      return;
    }
    this.#unanswered += 1;
    const passed = serverRequest(request, (reply) => {
      this.#unanswered -= 1;
      if (this.#unanswered === 0) this.#resume();
      request.answer(reply);
    });
    this.#subscriber.next(passed);
    if (this.#isPaused) this.#paused?.(true);
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#calls.resume(this.#ownerId);
    this.#paused?.(false);
  }

  get #isAnswered(): boolean {
    return this.#outcome === 'result' || this.#outcome === 'error';
  }
}

const TOO_MANY_WAIT: ClientReply = {
  error: { code: RPC.internalError, message: 'Too many calls wait for an answer of their client.' },
};

/** A failure without `delivered` counts as `unknown`, so that only a request that is safe to repeat is repeated. */
function callFailureOf(thrown: unknown): GatewayError {
  const error = asGatewayError(thrown);
  if (error.facts.delivered !== undefined) return error;
  return new GatewayError(error.code, error.message, { ...error.facts, delivered: 'unknown' });
}
