// A call of a modern client whose legacy backend has asked its client: the open questions, the buffered messages and
// the current subscriber. calls-with-questions.ts finds it for its owner.
//
//   gathering ── 50 ms ──► waiting: the client is asked ── resumed ──► running ── the backend asks ──► gathering …
//                           └ the exchange ends, at its deadline at the latest ──► kept for the client for 10 min; no longer counted
//                             as a call that waits
//   any of them ── the client has the end, has left, or will not return ──► over

import type { Subscriber, Subscription } from 'rxjs';
import type { SourcedEvent } from '../../../domain/calls/exchange.ts';
import { type FinalEvent, isFinal } from '../../../domain/calls/exchange-event.ts';
import { callCutOff } from '../../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../../domain/errors/errors.ts';
import {
  type ClientAnswer,
  type ClientQuestion,
  QUESTION_REFUSALS,
  type ServerRequest,
} from '../../../domain/mcp/client.ts';
import { type Holding, jsonMemory } from '../../../domain/memory/held-bytes.ts';
import { MessageBuffer } from '../../../domain/memory/message-buffer.ts';
import type { Clock } from '../../../domain/time/clock.ts';

/** How long the end of a modern client's call is kept for it. */
export const UNREAD_END_MS = 10 * 60_000;

/** The table of the calls, as one of them uses it. */
export interface AskingCallTable {
  /** True when no call may wait for its client any more. */
  readonly isDismissed: boolean;
  readonly alarm: Clock['alarm'];
  /** Counts the memory of a call, which ends when others need that memory. */
  hold(asking: AskingCall): Holding;
  /** The exchange of a call has ended while its client was away. */
  ended(asking: AskingCall): void;
  /** A call is over; before, it was kept for its client or was under way. Called once. */
  gone(asking: AskingCall, wasKept: boolean): void;
}

type CallSubscriber = Subscriber<SourcedEvent | ClientQuestion>;
/** Delivers the end of an exchange to the subscriber. */
type DeliverEnd = (subscriber: CallSubscriber) => void;

/** The stages as the head of this file draws them. `disarm` cancels the timer of the stage. */
type Stage =
  | { readonly kind: 'running'; readonly subscriber: CallSubscriber }
  | { readonly kind: 'gathering'; readonly subscriber: CallSubscriber; readonly disarm: () => void }
  | { readonly kind: 'kept'; readonly end: DeliverEnd; readonly disarm: () => void }
  | { readonly kind: 'waiting' | 'over' };

/**
 * Time for which questions are gathered, to reach the client together, in ms. On a busy machine dozens of ms may pass
 * between questions that a program asks at once, and each further round costs the client a request.
 */
const GATHERING_MS = 50;
/** The most open questions of one call; further ones are refused. */
const MAX_OPEN = 64;

export interface AskingCallOptions {
  readonly table: AskingCallTable;
  readonly id: string;
  readonly ownerId: string;
  readonly method: string;
  /** The subscription to the exchange; unsubscribing cancels it. */
  readonly source: Subscription;
  readonly subscriber: CallSubscriber;
  /** The instance that asked. */
  readonly instanceId: string;
}

/** One call whose client was asked. It owns the subscription to its exchange, and ends as the head of this file says. */
export class AskingCall {
  readonly id: string;
  readonly ownerId: string;
  readonly #table: AskingCallTable;
  readonly #method: string;
  readonly #source: Subscription;
  #stage: Stage;
  readonly #open = new Map<string, ServerRequest>();
  #instanceId: string;
  #lastKey = 0;
  /** Messages that the backend sent while there was no subscriber, oldest first. */
  readonly #buffered = new MessageBuffer<SourcedEvent>();
  readonly #holding: Holding;
  /** The memory of the open questions, in bytes. */
  #questionBytes = 0;

  constructor(options: AskingCallOptions) {
    const { table, id, ownerId, method, source, subscriber, instanceId } = options;
    this.#table = table;
    this.id = id;
    this.ownerId = ownerId;
    this.#method = method;
    this.#source = source;
    this.#instanceId = instanceId;
    this.#stage = { kind: 'running', subscriber };
    this.#holding = table.hold(this);
  }

  /** True while the client is expected to return. */
  get isWaiting(): boolean {
    return this.#stage.kind === 'waiting' || this.isKept;
  }

  /** True when the exchange has ended, and only its end is left to deliver. */
  get isKept(): boolean {
    return this.#stage.kind === 'kept';
  }

  next(sourced: SourcedEvent): void {
    this.#instanceId = sourced.instanceId;
    if (sourced.event.kind === 'request') this.#addQuestion(sourced.event);
    else if (isFinal(sourced.event))
      this.#finish((subscriber) => subscriber.next(sourced), endBytes(sourced.event));
    else if (this.#subscriber !== undefined) this.#subscriber.next(sourced);
    else this.#buffered.put(sourced, 'params' in sourced.event ? sourced.event.params : {});
  }

  error(thrown: unknown): void {
    this.#finish((subscriber) => subscriber.error(thrown));
  }

  complete(): void {
    this.#finish((subscriber) => subscriber.complete());
  }

  waitsFor(ownerId: string, method: string): boolean {
    return this.isWaiting && ownerId === this.ownerId && method === this.#method;
  }

  /** Delivers the buffered messages, then the end, or passes the answers on. Questions without an answer are asked again. */
  resume(subscriber: CallSubscriber, answers: ReadonlyMap<string, ClientAnswer>): void {
    const before = this.#stage;
    const messages = this.#buffered.takeAll();
    if (before.kind === 'kept') this.#dispose();
    else this.#stage = { kind: 'running', subscriber };
    for (const message of messages) subscriber.next(message);
    if (before.kind === 'kept') deliver(before.end, subscriber);
    else if (!subscriber.closed) this.#answerQuestions(answers);
  }

  /** Handles a subscriber that leaves: cancels the exchange, unless the subscriber has got everything. */
  leave(subscriber: CallSubscriber): void {
    if (subscriber === this.#subscriber) this.cancel();
  }

  /** Refuses the open questions and cancels the exchange. The subscriber gets nothing more. */
  cancel(): void {
    if (this.#stage.kind === 'over') return;
    this.#dispose();
    this.#refuseQuestions();
    this.#source.unsubscribe();
  }

  /** Cancels the exchange like `cancel`, and errors the subscriber. */
  end(error: GatewayError): void {
    const subscriber = this.#subscriber;
    this.cancel();
    subscriber?.error(error);
  }

  #addQuestion(request: ServerRequest): void {
    if (this.#open.size >= MAX_OPEN) {
      request.answer(QUESTION_REFUSALS.notAnswered);
      return;
    }
    this.#lastKey += 1;
    this.#open.set(`request-${this.#lastKey}`, request);
    this.#questionBytes += jsonMemory(request.params);
    if (this.#holding.set(this.#questionBytes)) this.#gather();
  }

  #answerQuestions(answers: ReadonlyMap<string, ClientAnswer>): void {
    for (const [key, request] of [...this.#open]) {
      const answer = answers.get(key);
      if (answer === undefined) continue;
      this.#open.delete(key);
      this.#questionBytes -= jsonMemory(request.params);
      request.answer(answer);
    }
    if (!this.#holding.set(this.#questionBytes)) return;
    if (this.#open.size > 0) this.#gather();
  }

  /**
   * Starts the timer after which the client is asked. Without effect while the client is away, or when the timer
   * runs: the question then goes with the next ones.
   */
  #gather(): void {
    if (this.#stage.kind !== 'running') return;
    const { subscriber } = this.#stage;
    const disarm = this.#table.alarm(GATHERING_MS, () => this.#ask(subscriber));
    this.#stage = { kind: 'gathering', subscriber, disarm };
  }

  /** Sends the questions to the client, ends the client's request, and waits for the client to return. */
  #ask(subscriber: CallSubscriber): void {
    if (this.#table.isDismissed) {
      this.end(callCutOff());
      return;
    }
    this.#stage = { kind: 'waiting' };
    const requests = new Map([...this.#open].map(([key, { method, params }]) => [key, { method, params }]));
    subscriber.next({ kind: 'asked', id: this.id, instanceId: this.#instanceId, requests });
    subscriber.complete();
  }

  #refuseQuestions(): void {
    for (const request of this.#open.values()) request.answer(QUESTION_REFUSALS.notAnswered);
    this.#open.clear();
    this.#questionBytes = 0;
  }

  /** Records or delivers the end of the exchange. Open questions need no answer any more. */
  #finish(end: DeliverEnd, bytes = 0): void {
    if (this.#stage.kind === 'over' || this.#stage.kind === 'kept') return;
    this.#refuseQuestions();
    const subscriber = this.#subscriber;
    if (subscriber !== undefined) {
      this.#dispose();
      deliver(end, subscriber);
    } else {
      this.#table.ended(this);
      const disarm = this.#table.alarm(UNREAD_END_MS, () => this.cancel());
      this.#stage = { kind: 'kept', end, disarm };
      this.#holding.set(bytes);
    }
  }

  get #subscriber(): CallSubscriber | undefined {
    return 'subscriber' in this.#stage ? this.#stage.subscriber : undefined;
  }

  #dispose(): void {
    const before = this.#stage;
    this.#stage = { kind: 'over' };
    if ('disarm' in before) before.disarm();
    this.#buffered.takeAll();
    this.#holding.release();
    this.#table.gone(this, before.kind === 'kept');
  }
}

function deliver(end: DeliverEnd, subscriber: CallSubscriber): void {
  end(subscriber);
  subscriber.complete();
}

/** The size of the end of a call: a result is kept as bytes, and the values of an error are few. */
function endBytes(event: FinalEvent): number {
  if (event.kind === 'result') return event.result.bytes.length;
  return JSON.stringify(event.error).length;
}
