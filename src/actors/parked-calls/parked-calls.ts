// The table of the calls of modern clients whose legacy backend asks its client: finds them for their owner, and bounds their
// number. A call without questions passes through. parked-call.ts is one call.

import { randomBytes } from 'node:crypto';
import { Observable, Subscription } from 'rxjs';
import type { AnyActorRef } from 'xstate';
import type { ClientQuestion, ClientReply } from '../../domain/client.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { shuttingDown } from '../../domain/errors.ts';
import type { Answer } from '../../domain/exchange.ts';
import { OwnerShares } from '../../domain/held-bytes.ts';
import { LIMITS } from '../../domain/limits.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import { parkingRefusal } from '../instances/call-counter.ts';
import { type CallSubscriber, NO_REPLY, ParkedCall } from './parked-call.ts';

/** Whoever knows an id, and is its owner, may resume the call: 144 bits. */
const ID_BYTES = 18;

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

  /** The number of calls that wait, or waited before and have not ended. */
  get size(): number {
    return this.#calls.size;
  }

  get owners(): Iterable<string> {
    return this.#shares.owners;
  }

  /**
   * Passes the events of an exchange on. When the backend asks its client something, the exchange is parked: the subscriber gets
   * one ClientQuestion and completes, and the exchange continues without it for LIMITS.parkedCallMs. Unsubscribing before that
   * cancels the exchange. `call` names the call, and is required to resume it. Cold. Errors: those of the exchange; QUEUE_FULL
   * when LIMITS.parkedCalls are parked, or the owner's share of them.
   */
  follow(owner: CallOwner, call: string, answers$: Observable<Answer>): Observable<Answer | ClientQuestion> {
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
   * Resumes a parked call: passes the replies of the client to the backend, and emits what follows, perhaps another
   * ClientQuestion. Questions without a reply stay open and are asked again. Unsubscribing before the end cancels the exchange.
   * Undefined, without effect, when there is no such call, it belongs to another owner or `call`, or it is resumed already. The
   * observable is for one subscriber.
   */
  resume(
    id: string,
    owner: CallOwner,
    call: string,
    replies: ReadonlyMap<string, ClientReply>,
  ): Observable<Answer | ClientQuestion> | undefined {
    const parked = this.#calls.get(id);
    if (parked?.claim(owner.id, call) !== true) return undefined;
    return new Observable((subscriber) => {
      subscriber.add(() => parked.leave(subscriber));
      parked.resume(subscriber, replies);
    });
  }

  /** Ends the parked calls of an owner, including resumed ones. Resolves when they have ended. */
  endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#calls.values()].filter((parked) => parked.ownerId === ownerId);
    const error = backendUnavailable('its caller may not use it any more', { delivered: 'unknown' });
    return this.#scheduler.each(theirs, (parked) => parked.end(error));
  }

  /** Ends all calls that wait for their client; resumed ones continue. */
  dismiss(): Promise<void> {
    return this.#scheduler.each([...this.#calls.values()], (parked) => {
      if (parked.isWaiting) parked.cancel();
    });
  }

  close(): Promise<void> {
    return this.#scheduler.each([...this.#calls.values()], (parked) => parked.end(shuttingDown()));
  }

  #park(owner: CallOwner, call: string, source: Subscription, subscriber: CallSubscriber): ParkedCall {
    const id = randomBytes(ID_BYTES).toString('base64url');
    const gone = () => {
      if (this.#calls.delete(id)) this.#shares.release(owner.id);
    };
    const parked = new ParkedCall(id, owner.id, call, source, subscriber, gone, this.#root);
    this.#calls.set(id, parked);
    this.#shares.take(owner.id);
    return parked;
  }
}
