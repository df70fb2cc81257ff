// One call of a modern client whose legacy backend asks that client something: what is asked, what the backend said while
// nobody listened, and who listens now. When what happens is parked-call.machine.ts; finding calls is parked-calls.ts.

import type { Subscriber, Subscription } from 'rxjs';
import { createActor } from 'xstate';
import { backendUnavailable } from '../../domain/backend-errors.ts';
import type { ClientReply, ServerRequest } from '../../domain/client.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { type Answer, isFinal } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { KeptMessages } from '../kept-messages.ts';
import { type ParkedCallActor, parkedCallMachine } from './parked-call.machine.ts';

/** A backend waits for its client. The same shape as in the ports of the endpoint. */
export interface ParkedRequest {
  readonly kind: 'asked';
  /** Names the parked call. */
  readonly id: string;
  readonly instanceId: string;
  /** What it wants to know, by a key that the replies are to carry. */
  readonly requests: ReadonlyMap<string, { readonly method: string; readonly params: JsonObject }>;
}

/** Who may go on with the call, and with which one. */
export interface Claim {
  readonly ownerId: string;
  readonly call: string;
}

export type Listener = Subscriber<Answer | ParkedRequest>;

/** What nobody answered: the backend may go on without. */
export const NO_REPLY: ClientReply = {
  error: { code: RPC.internalError, message: 'The client did not answer.' },
};

/** Questions of one call that wait at a time; further ones are answered at once, with NO_REPLY. */
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
  /** What the backend said while nobody listened, oldest first. */
  readonly #kept = new KeptMessages<Answer>();
  /** How the exchange ended while nobody listened; passed on behind what was kept. */
  #end: ((listener: Listener) => void) | undefined;
  #listener: Listener | undefined;
  #isClaimed = false;
  #isOver = false;

  /** `source` is the exchange; `gone` is called once, when the call is over. */
  constructor(id: string, claim: Claim, source: Subscription, listener: Listener, gone: () => void) {
    this.id = id;
    this.#claim = claim;
    this.#source = source;
    this.#listener = listener;
    this.#gone = gone;
    this.#actor = createActor(parkedCallMachine, {
      input: { ask: () => this.#ask(), expire: () => this.cancel() },
    });
    this.#actor.start();
  }

  get ownerId(): string {
    return this.#claim.ownerId;
  }

  /** True while nobody listens: its client is to come back. */
  get isWaiting(): boolean {
    return this.#listener === undefined && !this.#isClaimed;
  }

  /** What the exchange says. */
  next(answer: Answer): void {
    this.#instanceId = answer.instanceId;
    if (answer.event.kind === 'request') this.#takeIn(answer.event);
    else if (isFinal(answer.event)) this.#finish((listener) => listener.next(answer));
    else if (this.#listener !== undefined) this.#listener.next(answer);
    else this.#kept.put(answer, 'params' in answer.event ? answer.event.params : {});
  }

  error(thrown: unknown): void {
    this.#finish((listener) => listener.error(thrown));
  }

  complete(): void {
    this.#finish((listener) => listener.complete());
  }

  /** True once, for whoever may go on with it while it waits. */
  claim({ ownerId, call }: Claim): boolean {
    const isTheirs = ownerId === this.#claim.ownerId && call === this.#claim.call;
    if (!isTheirs || this.#isClaimed || this.#listener !== undefined) return false;
    this.#isClaimed = true;
    return true;
  }

  /** Goes on: first what was kept, then what follows from the replies. Those that are missing are asked for again. */
  resume(listener: Listener, replies: ReadonlyMap<string, ClientReply>): void {
    this.#isClaimed = false;
    if (this.#isOver)
      listener.error(backendUnavailable('its client came back too late', { delivered: 'unknown' }));
    else this.#goOn(listener, replies);
  }

  /** The listener went away: if it was still to hear something, the exchange is over. */
  leave(listener: Listener): void {
    if (listener === this.#listener) this.cancel();
  }

  /** Ends the exchange: the backend's requests first, then itself. Whoever listens hears nothing more. */
  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#listener = undefined;
    this.#refuseAll();
    this.#source.unsubscribe();
    this.#forget();
  }

  /** The same for whoever ends it on somebody who listens: they hear why. */
  end(error: GatewayError): void {
    const listener = this.#listener;
    this.cancel();
    listener?.error(error);
  }

  #goOn(listener: Listener, replies: ReadonlyMap<string, ClientReply>): void {
    this.#listener = listener;
    this.#actor.send({ type: 'resumed' });
    for (const answer of this.#kept.takeAll()) listener.next(answer);
    if (this.#end !== undefined) this.#pass(listener, this.#end);
    else if (!listener.closed) this.#hand(replies);
  }

  #takeIn(request: ServerRequest): void {
    if (this.#open.size >= MOST_OPEN) {
      request.answer(NO_REPLY);
      return;
    }
    this.#lastKey += 1;
    this.#open.set(`request-${this.#lastKey}`, request);
    this.#actor.send({ type: 'asked' }); // heard while it runs; otherwise it is asked with the others, or at the next turn
  }

  #hand(replies: ReadonlyMap<string, ClientReply>): void {
    for (const [key, request] of [...this.#open]) {
      const reply = replies.get(key);
      if (reply === undefined) continue;
      this.#open.delete(key);
      request.answer(reply);
    }
    if (this.#open.size > 0) this.#actor.send({ type: 'asked' });
  }

  #ask(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    const requests = new Map([...this.#open].map(([key, { method, params }]) => [key, { method, params }]));
    listener?.next({ kind: 'asked', id: this.id, instanceId: this.#instanceId, requests });
    listener?.complete();
  }

  #refuseAll(): void {
    for (const request of this.#open.values()) request.answer(NO_REPLY);
    this.#open.clear();
  }

  /** The exchange has ended. What it asked needs no reply any more, unless the backend asked it beside the exchange. */
  #finish(end: (listener: Listener) => void): void {
    if (this.#isOver || this.#end !== undefined) return;
    this.#refuseAll();
    if (this.#listener === undefined) this.#end = end;
    else this.#pass(this.#listener, end);
  }

  #pass(listener: Listener, end: (listener: Listener) => void): void {
    this.#isOver = true;
    this.#listener = undefined;
    this.#forget();
    end(listener);
    listener.complete();
  }

  #forget(): void {
    this.#kept.takeAll();
    this.#actor.send({ type: 'over' });
    this.#gone();
  }
}
