// Calls of modern clients whose legacy backend asks its client: finds them again for their owner, and bounds their number. A call
// without questions only passes through. parked-call.ts is one call.

import { randomBytes } from 'node:crypto';
import { Observable, Subscription } from 'rxjs';
import type { AnyActorRef } from 'xstate';
import type { ClientReply } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { shuttingDown } from '../../domain/errors.ts';
import type { Answer } from '../../domain/exchange.ts';
import { LIMITS } from '../../domain/limits.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import { parkingRefusal } from '../instances/call-counter.ts';
import { OwnerShares } from '../instances/owner-shares.ts';
import { type CallSubscriber, NO_REPLY, ParkedCall, type ParkedRequest } from './parked-call.ts';

/** 144 bits: the owner that knows an id may answer for the call. */
const ID_BYTES = 18;

/** The owner of a call. */
export interface CallOwner {
  readonly id: string;
}

export class ParkedCalls {
  readonly #scheduler: TaskScheduler;
  readonly #root: AnyActorRef | undefined;
  readonly #calls = new Map<string, ParkedCall>();
  readonly #shares = new OwnerShares(LIMITS.parkedCalls);

  /** `scheduler`: spreads the end of many calls. `root`: the parent of their actors. Default: none, which only specs use. */
  constructor(scheduler = new TaskScheduler(), root?: AnyActorRef) {
    this.#scheduler = scheduler;
    this.#root = root;
  }

  /** Calls that wait, or did once and have not ended. */
  get size(): number {
    return this.#calls.size;
  }

  /** Ids of their owners. */
  get owners(): Iterable<string> {
    return this.#shares.owners;
  }

  /**
   * Passes the events of an exchange on. When the backend asks its client something, the exchange is parked: the
   * subscriber gets one ParkedRequest and the end, the exchange goes on without it for LIMITS.parkedCallMs. Unsubscribing
   * before that cancels the exchange. `call` names what was asked for: only a call of that name is gone on with. Cold.
   * Errors: those of the exchange; QUEUE_FULL when LIMITS.parkedCalls are parked, or the owner's share of them.
   */
  follow(owner: CallOwner, call: string, answers$: Observable<Answer>): Observable<Answer | ParkedRequest> {
    return new Observable((subscriber) => {
      const source = new Subscription();
      let parked: ParkedCall | undefined;
      subscriber.add(() => (parked === undefined ? source.unsubscribe() : parked.leave(subscriber)));
      const subscription = answers$.subscribe({
        next: (answer) => {
          if (parked === undefined && answer.event.kind === 'request') {
            const refusal = parkingRefusal(this.#shares, owner.id);
            if (refusal !== undefined) {
              answer.event.answer(NO_REPLY);
              source.unsubscribe();
              return subscriber.error(refusal);
            }
            parked = this.#park(owner, call, source, subscriber);
          }
          (parked ?? subscriber).next(answer);
        },
        error: (thrown: unknown) => (parked ?? subscriber).error(thrown),
        complete: () => (parked ?? subscriber).complete(),
      });
      source.add(subscription);
    });
  }

  /**
   * Goes on with a parked call: hands in what the client answered, and emits what follows, another `Asked` included.
   * Requests that no reply is for stay open and are asked for again. Unsubscribing before the end cancels the exchange.
   * Undefined when there is no such call, it belongs to another owner or `call`, or it is resumed already; then
   * the call is as it was. The observable is for one subscriber.
   */
  resume(
    id: string,
    owner: CallOwner,
    call: string,
    replies: ReadonlyMap<string, ClientReply>,
  ): Observable<Answer | ParkedRequest> | undefined {
    const parked = this.#calls.get(id);
    if (parked?.claim({ ownerId: owner.id, call }) !== true) return undefined;
    return new Observable((subscriber) => {
      subscriber.add(() => parked.leave(subscriber));
      parked.resume(subscriber, replies);
    });
  }

  /** Ends the parked calls of an owner, those that go on included. Resolves when it has; so do the others. */
  endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#calls.values()].filter((parked) => parked.ownerId === ownerId);
    const error = backendUnavailable('its caller may not use it any more', { delivered: 'unknown' });
    return this.#scheduler.each(theirs, (parked) => parked.end(error));
  }

  /** Ends every call that waits for its client; those that go on go on. */
  dismiss(): Promise<void> {
    return this.#scheduler.each([...this.#calls.values()], (parked) => {
      if (parked.isWaiting) parked.cancel();
    });
  }

  /** Ends every call that is parked, those that go on included. */
  close(): Promise<void> {
    return this.#scheduler.each([...this.#calls.values()], (parked) => parked.end(shuttingDown()));
  }

  #park(owner: CallOwner, call: string, source: Subscription, subscriber: CallSubscriber): ParkedCall {
    const id = randomBytes(ID_BYTES).toString('base64url');
    const claim = { ownerId: owner.id, call };
    const gone = () => {
      if (this.#calls.delete(id)) this.#shares.release(owner.id);
    };
    const parked = new ParkedCall(id, claim, source, subscriber, gone, this.#root);
    this.#calls.set(id, parked);
    this.#shares.take(owner.id);
    return parked;
  }
}
