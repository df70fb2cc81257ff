// One call of a modern client whose legacy backend asks that client something: the open questions, the buffered messages, and the
// current subscriber. parked-call.machine.ts has the states, parked-calls.ts the table.

import type { Subscriber, Subscription } from 'rxjs';
import type { AnyActorRef } from 'xstate';
import { createActor } from 'xstate';
import type { ClientReply, ServerRequest } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { type Answer, isFinal } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { MessageBuffer } from '../message-buffer.ts';
import { CLIENT_ACTORS } from '../template.machine.ts';
import { type ParkedCallActor, parkedCallMachine } from './parked-call.machine.ts';

/** A backend waits for its client. The same shape as ClientQuestion of protocol/ports.ts. */
export interface ParkedRequest {
  readonly kind: 'asked';
  /** Names the parked call. */
  readonly id: string;
  readonly instanceId: string;
  /** The questions, by a key that the replies carry. */
  readonly requests: ReadonlyMap<string, { readonly method: string; readonly params: JsonObject }>;
}

/** The owner that may resume the call, and the name of the call. */
export interface Claim {
  readonly ownerId: string;
  readonly call: string;
}

export type CallSubscriber = Subscriber<Answer | ParkedRequest>;

/** The reply to an unanswered question: the backend may continue without an answer. */
export const NO_REPLY: ClientReply = {
  error: { code: RPC.internalError, message: 'The client did not answer.' },
};

/** Most open questions of one call; further ones are answered with NO_REPLY. */
const MOST_OPEN = 64;

export class ParkedCall {
  readonly id: string;
  readonly #claim: Claim;
  readonly #source: Subscription;
  readonly #gone: () => void;
  readonly #actor: ParkedCallActor;
  readonly #open = new Map<string, ServerRequest>();
  #instanceId = '';
  #lastKey = 0;
  /** Messages of the backend without a subscriber, oldest first. */
  readonly #buffered = new MessageBuffer<Answer>();
  /** The end of the exchange while there was no subscriber; delivered after the buffered messages. */
  #end: ((subscriber: CallSubscriber) => void) | undefined;
  #subscriber: CallSubscriber | undefined;
  #isClaimed = false;
  #isOver = false;

  /** `source` is the exchange; `gone` is called once, when the call is over; `root` is the parent of its actor. */
  constructor(
    id: string,
    claim: Claim,
    source: Subscription,
    subscriber: CallSubscriber,
    gone: () => void,
    root: AnyActorRef | undefined,
  ) {
    this.id = id;
    this.#claim = claim;
    this.#source = source;
    this.#subscriber = subscriber;
    this.#gone = gone;
    this.#actor = createActor(parkedCallMachine, {
      id: CLIENT_ACTORS.parkedCall,
      ...(root && { parent: root }),
      input: { ownerId: claim.ownerId, ask: () => this.#sendQuestions(), expire: () => this.cancel() },
    });
    this.#actor.start();
  }

  get ownerId(): string {
    return this.#claim.ownerId;
  }

  /** True while there is no subscriber: the client is expected to return. */
  get isWaiting(): boolean {
    return this.#subscriber === undefined && !this.#isClaimed;
  }

  /** A message of the exchange. */
  next(answer: Answer): void {
    this.#instanceId = answer.instanceId;
    if (answer.event.kind === 'request') this.#addQuestion(answer.event);
    else if (isFinal(answer.event)) this.#finish((subscriber) => subscriber.next(answer));
    else if (this.#subscriber !== undefined) this.#subscriber.next(answer);
    else this.#buffered.put(answer, 'params' in answer.event ? answer.event.params : {});
  }

  error(thrown: unknown): void {
    this.#finish((subscriber) => subscriber.error(thrown));
  }

  complete(): void {
    this.#finish((subscriber) => subscriber.complete());
  }

  /** True once, for a claim of the owner while the call waits. */
  claim({ ownerId, call }: Claim): boolean {
    const isTheirs = ownerId === this.#claim.ownerId && call === this.#claim.call;
    if (!isTheirs || this.#isClaimed || this.#subscriber !== undefined) return false;
    this.#isClaimed = true;
    return true;
  }

  /** Delivers the buffered messages, then what follows from the replies. Questions without a reply are asked again. */
  resume(subscriber: CallSubscriber, replies: ReadonlyMap<string, ClientReply>): void {
    this.#isClaimed = false;
    if (this.#isOver)
      subscriber.error(backendUnavailable('its client came back too late', { delivered: 'unknown' }));
    else this.#continue(subscriber, replies);
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
    this.#source.unsubscribe();
    this.#dispose();
  }

  /** Like `cancel`, with an error for the subscriber. */
  end(error: GatewayError): void {
    const subscriber = this.#subscriber;
    this.cancel();
    subscriber?.error(error);
  }

  #continue(subscriber: CallSubscriber, replies: ReadonlyMap<string, ClientReply>): void {
    this.#subscriber = subscriber;
    this.#actor.send({ type: 'resumed' });
    for (const answer of this.#buffered.takeAll()) subscriber.next(answer);
    if (this.#end !== undefined) this.#deliverEnd(subscriber, this.#end);
    else if (!subscriber.closed) this.#answerQuestions(replies);
  }

  #addQuestion(request: ServerRequest): void {
    if (this.#open.size >= MOST_OPEN) {
      request.answer(NO_REPLY);
      return;
    }
    this.#lastKey += 1;
    this.#open.set(`request-${this.#lastKey}`, request);
    this.#actor.send({ type: 'asked' }); // has an effect only while the call runs; otherwise the question goes with the others
  }

  #answerQuestions(replies: ReadonlyMap<string, ClientReply>): void {
    for (const [key, request] of [...this.#open]) {
      const reply = replies.get(key);
      if (reply === undefined) continue;
      this.#open.delete(key);
      request.answer(reply);
    }
    if (this.#open.size > 0) this.#actor.send({ type: 'asked' });
  }

  #sendQuestions(): void {
    const subscriber = this.#subscriber;
    this.#subscriber = undefined;
    const requests = new Map([...this.#open].map(([key, { method, params }]) => [key, { method, params }]));
    subscriber?.next({ kind: 'asked', id: this.id, instanceId: this.#instanceId, requests });
    subscriber?.complete();
  }

  #refuseQuestions(): void {
    for (const request of this.#open.values()) request.answer(NO_REPLY);
    this.#open.clear();
  }

  /** The exchange has ended: its open questions need no reply. */
  #finish(end: (subscriber: CallSubscriber) => void): void {
    if (this.#isOver || this.#end !== undefined) return;
    this.#refuseQuestions();
    if (this.#subscriber === undefined) this.#end = end;
    else this.#deliverEnd(this.#subscriber, end);
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
    this.#actor.send({ type: 'over' });
    this.#gone();
  }
}
