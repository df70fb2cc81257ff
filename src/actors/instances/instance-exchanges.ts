// The calls at one instance: each is counted, handed to the session and let go, and what it met may make the instance doubtful.
// What follows from the numbers and from the doubts is decided in instance.machine.ts.

import { Observable, type Subscription } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import { backendUnavailable } from '../../domain/backend-errors.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { reasonOf } from '../../domain/failures.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { Upstream } from '../../transports/transport.ts';
import { type ExchangeEnding, Reply } from '../calls/reply.ts';
import type { InFlightSlots } from './in-flight-slots.ts';
import type { InstanceActor } from './instance.machine.ts';
import { stateOf } from './instance-view.ts';

/** What an exchange needs besides its request. */
export interface ExchangeHooks {
  /** Told in the teardown how it ended. */
  readonly finished?: (ending: ExchangeEnding) => void;
  /**
   * Asked in the teardown for the error with which the gateway itself ends an exchange; without one, an unanswered
   * exchange was cancelled by its caller.
   */
  readonly overdue?: () => GatewayError | undefined;
  /** Told that it gave its place back, until its client has answered its backend. */
  readonly rested?: () => void;
  /** The conversation of one client that it goes through. Default: the instance's own. */
  readonly upstream?: Upstream | undefined;
}

/** What they need of their instance. */
export interface ExchangeDeps {
  readonly actor: InstanceActor;
  /** Counted here, too: the actor counts a moment later when it is called from within one of its own transitions. */
  readonly slots: InFlightSlots;
  /** Ends when the instance does. */
  readonly state$: Observable<InstanceState>;
  readonly now: () => number;
}

export class InstanceExchanges {
  readonly #actor: InstanceActor;
  readonly #state$: Observable<InstanceState>;
  readonly #now: () => number;
  readonly #slots: InFlightSlots;

  constructor({ actor, slots, state$, now }: ExchangeDeps) {
    this.#actor = actor;
    this.#slots = slots;
    this.#state$ = state$;
    this.#now = now;
  }

  /** See InstanceRef.exchange. */
  exchange(request: ExchangeRequest, hooks: ExchangeHooks): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      if (stateOf(this.#actor.getSnapshot()) === 'stopped') {
        subscriber.error(stopped());
        return;
      }
      const ownerId = request.caller ?? ANONYMOUS.id;
      const reply = new Reply(subscriber, this.#now, { slots: this.#slots, ownerId, rested: hooks.rested });
      this.#slots.take(ownerId);
      this.#send(request, reply, hooks.upstream);
      if (!reply.isTaken) subscriber.add(this.#refuseIfItStops(reply));
      return () => {
        const ending = reply.end(hooks.overdue?.());
        this.#slots.leave(ownerId, reply.hasReturned);
        this.#actor.send({ type: 'released', ending });
        this.doubt(ending.error);
        hooks.finished?.(ending);
      };
    });
  }

  /** A conversation that stands alone is no business of the session: it may be there while that is not. */
  #send(request: ExchangeRequest, reply: Reply, upstream: Upstream | undefined): void {
    if (upstream?.standsAlone !== true) {
      this.#actor.send({ type: 'request', request, reply, upstream });
      return;
    }
    this.#actor.send({ type: 'request.past' });
    try {
      reply.follow(upstream.exchange(request));
    } catch (thrown) {
      reply.error(thrown); // a fault of the conversation costs one call
    }
  }

  /** Errors never flip health, but what they met may: a refused connection does at once, other doubts ask for a probe. */
  doubt(error: GatewayError | undefined): void {
    if (error === undefined) return;
    if (error.facts.unreachable) this.#actor.send({ type: 'unreachable', reason: reasonOf(error) });
    else if (error.facts.suspicious) this.#actor.send({ type: 'suspected' });
  }

  /** Sent while the actor is at work a request waits in its mailbox, which is lost with the actor. */
  #refuseIfItStops(reply: Reply): Subscription {
    return this.#state$.subscribe({ complete: () => reply.isTaken || reply.error(stopped()) });
  }
}

function stopped(): GatewayError {
  return backendUnavailable('it was stopped', { delivered: 'no' });
}
