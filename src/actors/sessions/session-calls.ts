// The calls of one session: those that wait for its binding, those that are under way, and those between two rounds, for which
// capacity is reserved at their instance. The state machine decides when waiting ones continue; client-session.ts passes its
// decisions on.

import { Observable, type Subscriber, Subscription } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
import {
  asGatewayError,
  atInstance,
  type GatewayError,
  perhapsDelivered,
} from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { tooMany } from '../../domain/errors/request-errors.ts';
import { sessionEnded } from '../../domain/errors/session-errors.ts';
import { type Linked, LinkedSet } from '../../domain/memory/linked-set.ts';
import { MAX_QUEUED_PER_INSTANCE } from '../instances/call-counter.ts';
import type { Binding } from './binding/binding.ts';
import type { SessionCore } from './session-core.ts';
import { SessionRoute } from './session-route.ts';
import { mayMove } from './session-rules.ts';

interface Reserved extends Linked {
  /** Ends the call, for which there will be no next round. */
  readonly end: (error: GatewayError) => void;
}

/** The wait of one call for the binding. */
interface BindingWait {
  /** True when the call needs a dedicated conversation. */
  readonly needsDedicated: boolean;
  readonly subscriber: Subscriber<Binding>;
}

/** Carries the calls of one session, and counts those under way and those between two rounds. */
export class SessionCalls {
  readonly #session: SessionCore;
  #bindingWaits: readonly BindingWait[] = [];
  readonly #underWay = new LinkedSet<SessionRoute>();
  /** The calls between two rounds. Made at the first use, since an idle session should consist of few objects. */
  #reservations: LinkedSet<Reserved> | undefined;
  #isAway = false;

  constructor(session: SessionCore) {
    this.#session = session;
  }

  get size(): number {
    return this.#underWay.size + this.#reserved;
  }

  /** True when calls are under way at a binding, or between two rounds. */
  get isCalling(): boolean {
    return this.#reserved > 0 || this.#underWay.values().some(({ binding }) => binding !== undefined);
  }

  /** True while calls wait for a binding. */
  get areWaiting(): boolean {
    return this.#bindingWaits.length > 0;
  }

  /** True when at least one of the waiting calls needs a dedicated conversation. */
  get needDedicated(): boolean {
    return this.#bindingWaits.some(({ needsDedicated }) => needsDedicated);
  }

  /** True when exactly one call is under way, and it is at this binding. */
  isOnlyCallAt(binding: Binding | undefined): boolean {
    return this.#underWay.size === 1 && this.#underWay.first?.binding === binding;
  }

  /** Makes one round of a call; cold. `reservation`: the binding where the call has to continue. */
  carry(request: ExchangeRequest, reservation?: Binding): Observable<SourcedEvent> {
    return new Observable((subscriber) => {
      const session = this.#session;
      session.used(); // one whose template is deleted ends
      const { template, endReason } = session.value;
      if (endReason !== undefined) return subscriber.error(sessionEnded(endReason));
      const { group, deps } = session;
      const route = new SessionRoute(session, request, reservation);
      this.#underWay.add(route);
      const input = () => ({ group, route, refusesUnknownTools: false });
      deps.dispatcher.carry(template, request, input).subscribe(subscriber);
      // Added last, because the teardown of the call must run first.
      subscriber.add(() => {
        if (this.#isAway) group.queue.removeYielding(route);
        this.#underWay.delete(route);
        session.callEnded();
      });
    });
  }

  /** See McpSession.reserve. The conversation of the call stays open meanwhile. */
  reserve({ event }: SourcedEvent, lost: (error: GatewayError) => void) {
    const session = this.#session;
    // By the event, not by the id of the instance, which a successor may have, too.
    const route = this.#underWay.values().find(({ lastEvent }) => lastEvent === event);
    const binding = route?.binding; // without one the call continues at the binding of the session
    const watching = new Subscription();
    this.#reservations ??= new LinkedSet();
    const reservations = this.#reservations;
    const leave = (): void => {
      if (!reservations.delete(reserved)) return;
      watching.unsubscribe();
      binding?.endCall();
      session.callEnded();
    };
    const end = (error: GatewayError): void => {
      if (!reservations.has(reserved)) return;
      lost(binding?.isIntact === false ? conversationLost(binding) : error);
      leave(); // afterwards: callers are answered before their session ends
    };
    const reserved: Reserved = { end };
    reservations.add(reserved);
    if (binding !== undefined) {
      binding.beginCall();
      const isContinuation = route?.reservation === binding;
      const couldMove = mayMove(session.value, session.group);
      const complete = () => {
        const isThere = session.binding === binding && !mayMove(session.value, session.group);
        if (!couldMove || isThere) end(conversationLost(binding)); // it can continue nowhere else
      };
      const error = (thrown: unknown) => end(asGatewayError(thrown));
      const { ref, conversation } = binding;
      const reservation$ = ref.reserve(session.value.ownerId, conversation, isContinuation);
      watching.add(reservation$.subscribe({ complete, error }));
    }
    return { exchange: (request: ExchangeRequest) => this.carry(request, binding), leave };
  }

  // --- waiting for a binding -------------------------------------------------------------------------------

  /** See SessionCore.untilBound. */
  untilBound(needsDedicated: boolean): Observable<Binding> {
    return new Observable((subscriber) => {
      const closed = this.#closed;
      if (closed !== undefined) return subscriber.error(closed);
      const exceeded = { most: MAX_QUEUED_PER_INSTANCE, isShare: false };
      if (this.#bindingWaits.length >= exceeded.most)
        return subscriber.error(tooMany('requests that wait for an instance', exceeded, 1));
      const wait = { needsDedicated, subscriber };
      this.#bindingWaits = [...this.#bindingWaits, wait];
      this.#session.requestBinding(needsDedicated);
      return () => {
        this.#bindingWaits = this.#bindingWaits.filter((each) => each !== wait);
      };
    });
  }

  /**
   * Continues all waiting calls. `failure`: of the opening of a dedicated conversation, for those that need one.
   * In a microtask, so that no call runs inside the actor's mailbox, and what it reports takes effect at once.
   */
  serve(binding: Binding, failure: GatewayError | undefined): void {
    const calls = this.#takeWaiting();
    if (calls.length === 0) return;
    queueMicrotask(() => {
      for (const { needsDedicated, subscriber } of calls) {
        if (failure !== undefined && needsDedicated) subscriber.error(failure);
        else subscriber.next(binding);
      }
    });
  }

  /**
   * Refuses all waiting calls with `failure`, otherwise because the gateway or the session closes, otherwise with the
   * error of `errorOf`. Later ones wait again.
   */
  refuseWaiting(failure: GatewayError | undefined, errorOf: () => GatewayError): void {
    const calls = this.#takeWaiting();
    if (calls.length === 0) return;
    const error = failure ?? this.#closed ?? errorOf();
    for (const { subscriber } of calls) subscriber.error(error);
  }

  /** Why no call waits any more; undefined while some may. */
  get #closed(): GatewayError | undefined {
    const { deps, value } = this.#session;
    if (!deps.isAccepting()) return shuttingDown();
    return value.endReason === undefined ? undefined : sessionEnded(value.endReason);
  }

  #takeWaiting(): readonly BindingWait[] {
    const calls = this.#bindingWaits;
    this.#bindingWaits = [];
    return calls;
  }

  // --- their end -------------------------------------------------------------------------------------------

  /** Ends the calls that are between two rounds; there will be no next round. */
  dismiss(error: GatewayError): void {
    for (const { end } of this.#reservations?.values() ?? []) end(perhapsDelivered(error));
  }

  /** Ends the calls under way and between two rounds, because the session is over. */
  refuse(error: GatewayError): void {
    for (const route of this.#underWay.values()) route.refuse(error);
    this.dismiss(error);
  }

  /** Sets whether the client is away. While it is, its calls end as soon as other calls wait for their capacity. */
  setAway(isAway: boolean): void {
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    const { queue } = this.#session.group;
    for (const route of this.#underWay.values()) {
      if (!isAway) queue.removeYielding(route);
      else if (this.#underWay.has(route)) queue.addYielding(route); // the end of one call may have ended others
    }
  }

  /** The number of calls between two rounds. */
  get #reserved(): number {
    return this.#reservations?.size ?? 0;
  }
}

/** The error of a call between two rounds. It equals that of a call that was under way at the binding. */
function conversationLost({ ref }: Binding): GatewayError {
  const reason = 'its conversation was lost before the call continued';
  return atInstance(backendUnavailable(reason, { delivered: 'unknown' }), ref.id);
}
