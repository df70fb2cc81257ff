// The calls of modern clients whose legacy backend has asked its client: a table that finds them for their owner
// and bounds their number, and for each call its open questions, the buffered messages and the current subscriber.
// A call without questions passes through.
//
//   gathering ── 50 ms ──► waiting: the client is asked ── resumed ──► running ── the backend asks ──► gathering …
//                           └ the exchange ends, at its deadline at the latest ──► kept for the client for 10 min; no longer counted
//                             as a call that waits

import { Observable, type Subscriber, Subscription } from 'rxjs';
import type { CallQuestions } from '../../../domain/calls/call-questions.ts';
import type { Answer } from '../../../domain/calls/exchange.ts';
import { type FinalEvent, isFinal } from '../../../domain/calls/exchange-event.ts';
import { backendUnavailable, callCutOff } from '../../../domain/errors/error-catalogue.ts';
import type { GatewayError } from '../../../domain/errors/errors.ts';
import { type JsonObject, valuesIn } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ClientQuestion, ClientReply, ServerRequest } from '../../../domain/mcp/client.ts';
import { RPC } from '../../../domain/mcp/jsonrpc.ts';
import { type HeldBytes, type Holding, memoryOf } from '../../../domain/memory/held-bytes.ts';
import { OwnerShares } from '../../../domain/memory/owner-shares.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import { awaitingClientRefusal } from '../../instances/call-counter.ts';
import { MessageBuffer } from '../../message-buffer.ts';

interface CallOwner {
  readonly id: string;
}

export interface CallsWithQuestionsOptions extends Pick<Clock, 'alarm'> {
  /** Spreads the end of many calls. */
  readonly scheduler: TaskScheduler;
  /** Counts their open questions and results. */
  readonly held: HeldBytes;
  /** The id by which its owner resumes a call: it begins with the life of this node, as that of a session. */
  readonly newId: () => string;
}

/** The calls that wait, or have waited, for an answer of their client. */
export class CallsWithQuestions implements CallQuestions {
  readonly #scheduler: TaskScheduler;
  readonly #alarm: Clock['alarm'];
  readonly #newId: () => string;
  readonly #calls = new Map<string, CallWithQuestions>();
  readonly #shares = new OwnerShares(LIMITS.callsAwaitingClient);
  /** Calls whose exchange has ended, until their clients return. */
  readonly #ended = new OwnerShares(LIMITS.callsAwaitingClient);
  readonly #held: HeldBytes;
  #isDismissed = false;

  constructor({ scheduler, held, alarm, newId }: CallsWithQuestionsOptions) {
    this.#newId = newId;
    this.#scheduler = scheduler;
    this.#held = held;
    this.#alarm = alarm;
  }

  /** The number of calls that wait, or waited before and have not ended. */
  get size(): number {
    return this.#calls.size;
  }

  get owners(): Iterable<string> {
    return [...this.#shares.owners, ...this.#ended.owners];
  }

  /**
   * See CallQuestions. A waiting call continues until its deadline, and its end is kept for
   * LIMITS.unreadEndMs. QUEUE_FULL when LIMITS.callsAwaitingClient wait, or the owner's share of them, without those whose
   * exchange has ended: of these the oldest are given up.
   */
  follow(owner: CallOwner, call: string, answers$: Observable<Answer>): Observable<Answer | ClientQuestion> {
    return new Observable((subscriber) => {
      const source = new Subscription();
      let asking: CallWithQuestions | undefined;
      subscriber.add(() => (asking === undefined ? source.unsubscribe() : asking.leave(subscriber)));
      const subscription = answers$.subscribe({
        next: (answer) => {
          if (asking === undefined && answer.event.kind === 'request') {
            const refusal = awaitingClientRefusal(this.#shares, owner.id);
            if (refusal !== undefined) {
              answer.event.answer(NO_REPLY);
              source.unsubscribe();
              return subscriber.error(refusal);
            }
            asking = this.#add(owner, call, source, subscriber);
          }
          (asking ?? subscriber).next(answer);
        },
        error: (thrown: unknown) => (asking ?? subscriber).error(thrown),
        complete: () => (asking ?? subscriber).complete(),
      });
      source.add(subscription);
    });
  }

  /**
   * See CallQuestions. Questions without a reply stay open and are asked again. Unsubscribing
   * before the end cancels the exchange. The observable is for one subscriber, which subscribes at once.
   */
  resume(
    id: string,
    owner: CallOwner,
    call: string,
    replies: ReadonlyMap<string, ClientReply>,
  ): Observable<Answer | ClientQuestion> | undefined {
    const asking = this.#calls.get(id);
    if (asking?.waitsFor(owner.id, call) !== true) return undefined;
    return new Observable((subscriber) => {
      subscriber.add(() => asking.leave(subscriber));
      asking.resume(subscriber, replies);
    });
  }

  /** Ends the calls of an owner, including resumed ones. Resolves when they have ended. */
  endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#calls.values()].filter((asking) => asking.ownerId === ownerId);
    const error = backendUnavailable('its caller may no longer use it', { delivered: 'unknown' });
    return this.#scheduler.each(theirs, (asking) => asking.end(error));
  }

  /** Ends all calls that wait for their client, and from now on each that would begin to. Resumed ones continue until then. */
  dismiss(): Promise<void> {
    this.#isDismissed = true;
    return this.#scheduler.each([...this.#calls.values()], (asking) => {
      if (asking.isWaiting) asking.cancel();
    });
  }

  close(): Promise<void> {
    return this.#scheduler.each([...this.#calls.values()], (asking) => asking.end(callCutOff()));
  }

  #add(owner: CallOwner, call: string, source: Subscription, subscriber: CallSubscriber): CallWithQuestions {
    const id = this.#newId();
    let shares = this.#shares;
    const gone = () => {
      if (this.#calls.delete(id)) shares.release(owner.id);
    };
    const ended = () => {
      this.#makeRoom(owner.id);
      shares.release(owner.id);
      shares = this.#ended;
      shares.take(owner.id);
    };
    const hold = (cut: () => void) => this.#held.hold(owner.id, cut);
    const isRefused = () => this.#isDismissed;
    const input = { id, ownerId: owner.id, call, source, isRefused, ended, gone, hold, alarm: this.#alarm };
    const asking = new CallWithQuestions(input, subscriber);
    this.#calls.set(id, asking);
    shares.take(owner.id);
    return asking;
  }

  /** For one more call whose exchange has ended: the oldest one is given up, of this owner if its share is full. */
  #makeRoom(ownerId: string): void {
    const isShareFull = this.#ended.isShareFull(ownerId);
    if (!isShareFull && !this.#ended.isFull) return;
    const ended = [...this.#calls.values()].filter(({ hasEnded }) => hasEnded);
    ended.find((asking) => !isShareFull || asking.ownerId === ownerId)?.cancel();
  }
}

type CallSubscriber = Subscriber<Answer | ClientQuestion>;

/** The reply to an unanswered question: the backend may continue without an answer. */
const NO_REPLY: ClientReply = {
  error: { code: RPC.internalError, message: 'The client did not answer.' },
};

/**
 * Questions within this time reach the client together, in ms: a busy machine may hold back a program, or this
 * process, for dozens of ms between questions that are asked at once, and each further round costs the client a
 * request.
 */
const GATHERING_MS = 50;
/** Most open questions of one call; further ones are answered with NO_REPLY. */
const MAX_OPEN = 64;

interface CallInput {
  readonly id: string;
  readonly ownerId: string;
  readonly call: string;
  /** The exchange. */
  readonly source: Subscription;
  readonly alarm: Clock['alarm'];
  /** Counts its memory; `cut` is called when others need it. */
  readonly hold: (cut: () => void) => Holding;
  /** True when no call may wait for its client any more. */
  readonly isRefused: () => boolean;
  /** The exchange has ended while the client was away. */
  readonly ended: () => void;
  /** The call is over. Idempotent. */
  readonly gone: () => void;
}

class CallWithQuestions {
  readonly #input: CallInput;
  /** Cancels the present wait: for further questions, or for the client. Undefined while the call runs. */
  #disarm: (() => void) | undefined;
  readonly #open = new Map<string, ServerRequest>();
  #instanceId = '';
  #lastKey = 0;
  /** Messages of the backend without a subscriber, oldest first. */
  readonly #buffered = new MessageBuffer<Answer>();
  /** The end of the exchange while there was no subscriber; delivered after the buffered messages. */
  #end: ((subscriber: CallSubscriber) => void) | undefined;
  #subscriber: CallSubscriber | undefined;
  #isOver = false;
  readonly #holding: Holding;
  /** Memory of the open questions. */
  #questionBytes = 0;

  constructor(input: CallInput, subscriber: CallSubscriber) {
    this.#input = input;
    this.#holding = input.hold(() => this.end(backendUnavailable(TOO_LARGE, { delivered: 'unknown' })));
    this.#subscriber = subscriber;
  }

  get ownerId(): string {
    return this.#input.ownerId;
  }

  /** True while there is no subscriber: the client is expected to return. */
  get isWaiting(): boolean {
    return this.#subscriber === undefined;
  }

  next(answer: Answer): void {
    this.#instanceId = answer.instanceId;
    if (answer.event.kind === 'request') this.#addQuestion(answer.event);
    else if (isFinal(answer.event))
      this.#finish((subscriber) => subscriber.next(answer), sizeOf(answer.event));
    else if (this.#subscriber !== undefined) this.#subscriber.next(answer);
    else this.#buffered.put(answer, 'params' in answer.event ? answer.event.params : {});
  }

  error(thrown: unknown): void {
    this.#finish((subscriber) => subscriber.error(thrown));
  }

  complete(): void {
    this.#finish((subscriber) => subscriber.complete());
  }

  /** True when it only waits to deliver its end. */
  get hasEnded(): boolean {
    return this.#end !== undefined && this.isWaiting;
  }

  waitsFor(ownerId: string, call: string): boolean {
    return this.isWaiting && ownerId === this.ownerId && call === this.#input.call;
  }

  /** Delivers the buffered messages, then what follows from the replies. Questions without a reply are asked again. */
  resume(subscriber: CallSubscriber, replies: ReadonlyMap<string, ClientReply>): void {
    this.#subscriber = subscriber;
    this.#endWait();
    for (const answer of this.#buffered.takeAll()) subscriber.next(answer);
    if (this.#end !== undefined) this.#deliverEnd(subscriber, this.#end);
    else if (!subscriber.closed) this.#answerQuestions(replies);
  }

  /** The subscriber left: unless it has got everything, the exchange is over. */
  leave(subscriber: CallSubscriber): void {
    if (subscriber === this.#subscriber) this.cancel();
  }

  /** Refuses the open questions and ends the exchange. The subscriber gets nothing more. */
  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#subscriber = undefined;
    this.#refuseQuestions();
    this.#input.source.unsubscribe();
    this.#dispose();
  }

  /** Like `cancel`, with an error for the subscriber. */
  end(error: GatewayError): void {
    const subscriber = this.#subscriber;
    this.cancel();
    subscriber?.error(error);
  }

  #addQuestion(request: ServerRequest): void {
    if (this.#open.size >= MAX_OPEN) {
      request.answer(NO_REPLY);
      return;
    }
    this.#lastKey += 1;
    this.#open.set(`request-${this.#lastKey}`, request);
    this.#questionBytes += paramsBytes(request.params);
    if (this.#holding.set(this.#questionBytes)) this.#gather();
  }

  #answerQuestions(replies: ReadonlyMap<string, ClientReply>): void {
    for (const [key, request] of [...this.#open]) {
      const reply = replies.get(key);
      if (reply === undefined) continue;
      this.#open.delete(key);
      this.#questionBytes -= paramsBytes(request.params);
      request.answer(reply);
    }
    if (!this.#holding.set(this.#questionBytes)) return;
    if (this.#open.size > 0) this.#gather();
  }

  /** Without effect unless the call runs: otherwise the question goes with the others, or in the next round. */
  #gather(): void {
    if (this.#subscriber !== undefined) this.#disarm ??= this.#input.alarm(GATHERING_MS, () => this.#ask());
  }

  #endWait(): void {
    this.#disarm?.();
    this.#disarm = undefined;
  }

  /** Sends the questions to the client, ends its request, and waits for its return. */
  #ask(): void {
    if (this.#input.isRefused()) {
      this.end(callCutOff());
      return;
    }
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    const requests = new Map([...this.#open].map(([key, { method, params }]) => [key, { method, params }]));
    subscriber?.next({ kind: 'asked', id: this.#input.id, instanceId: this.#instanceId, requests });
    subscriber?.complete();
  }

  #refuseQuestions(): void {
    for (const request of this.#open.values()) request.answer(NO_REPLY);
    this.#open.clear();
    this.#questionBytes = 0;
  }

  /** The exchange has ended: its open questions need no reply. */
  #finish(end: (subscriber: CallSubscriber) => void, bytes = 0): void {
    if (this.#isOver || this.#end !== undefined) return;
    this.#refuseQuestions();
    if (this.#subscriber !== undefined) this.#deliverEnd(this.#subscriber, end);
    else {
      this.#input.ended();
      this.#end = end;
      this.#disarm = this.#input.alarm(LIMITS.unreadEndMs, () => this.cancel());
      this.#holding.set(bytes);
    }
  }

  #deliverEnd(subscriber: CallSubscriber, end: (subscriber: CallSubscriber) => void): void {
    this.#isOver = true;
    this.#subscriber = undefined;
    this.#dispose();
    end(subscriber);
    subscriber.complete();
  }

  #dispose(): void {
    this.#buffered.takeAll();
    this.#endWait();
    this.#holding.release();
    this.#input.gone();
  }
}

const TOO_LARGE = 'the questions and results for absent clients reached their memory limit';

function paramsBytes(params: JsonObject): number {
  return memoryOf(valuesIn(params, Number.POSITIVE_INFINITY), JSON.stringify(params).length);
}

function sizeOf(event: FinalEvent): number {
  if (event.kind === 'result') return event.result.bytes.length;
  return JSON.stringify(event.error).length;
}
