// The calls of one session: those under way, and the reservations of those between two rounds. session-route.ts decides where a
// call goes.

import { Observable, Subscription } from 'rxjs';
import { LinkedSet } from '../../domain/call-map.ts';
import { backendUnavailable, sessionLost } from '../../domain/error-catalogue.ts';
import { asGatewayError, atInstance, type GatewayError, perhapsDelivered } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { Binding } from './bindings.ts';
import type { BoundSession } from './client-session-types.ts';
import type { SessionBinding } from './session-binding.ts';
import { SessionRoute } from './session-route.ts';

export class SessionCalls {
  readonly #host: SessionBinding;
  readonly #owner: BoundSession;
  // A parked session has neither: both are made with the first call.
  #calls: LinkedSet<SessionRoute> | undefined;
  #reservations: Set<HeldReservation> | undefined;
  #isAway = false;

  constructor(host: SessionBinding, owner: BoundSession) {
    this.#host = host;
    this.#owner = owner;
  }

  /** Includes calls between two rounds. */
  get size(): number {
    return (this.#calls?.size ?? 0) + (this.#reservations?.size ?? 0);
  }
  /** True when a call is at an instance, or has a reservation. */
  get hasBoundCalls(): boolean {
    if (this.#reservations !== undefined && this.#reservations.size > 0) return true;
    return (this.#calls?.values() ?? []).some(({ binding }) => binding !== undefined);
  }

  /** True when there is exactly one call, and it is under way at that binding. */
  isOnlyCallAt(binding: Binding): boolean {
    return this.#calls?.size === 1 && this.#calls.first?.binding === binding;
  }

  /** See ClientSession.exchange. `reservation`: the binding of the call's reservation, for as long as that lasts. */
  exchange(request: ExchangeRequest, reservation?: Binding): Observable<Answer> {
    return new Observable((subscriber) => {
      const { endReason } = this.#owner;
      if (endReason !== undefined) {
        subscriber.error(sessionLost(endReason));
        return;
      }
      this.#owner.used();
      const route = new SessionRoute(this.#host, request, reservation);
      const call = new Subscription();
      this.#calls ??= new LinkedSet();
      this.#calls.add(route);
      subscriber.add(() => {
        if (this.#isAway) this.#host.queue.withdraw(route);
        call.unsubscribe();
        this.#calls?.delete(route);
        this.#owner.callEnded();
      });
      call.add(
        this.#host.carry(request, route).subscribe({
          next: (answer) => subscriber.next(route.deliver(answer)),
          error: (thrown: unknown) => subscriber.error(thrown),
          complete: () => subscriber.complete(),
        }),
      );
    });
  }

  /** See McpSession.reserve of protocol/ports.ts. */
  reserve(answer: Answer, lost: (error: GatewayError) => void): HeldReservation {
    // Not by the id of the instance: its successor may have the same.
    const route = this.#calls?.values().find(({ lastAnswer }) => lastAnswer === answer);
    const reservation = new HeldReservation(this, route?.binding, lost);
    this.#reservations ??= new Set();
    this.#reservations.add(reservation);
    reservation.watch(this.#owner.ownerId, route?.reservation === route?.binding);
    return reservation;
  }

  left(reservation: HeldReservation): void {
    this.#reservations?.delete(reservation);
    this.#owner.callEnded();
  }

  /** True when a call with a reservation there can continue nowhere else. */
  isBoundTo(binding: Binding): boolean {
    return this.#host.binding === binding && !this.#host.mayMove;
  }

  /** While the client is away, its calls end as soon as other calls wait for their places. */
  setAway(isAway: boolean): void {
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    const { queue } = this.#host;
    for (const route of this.#calls?.values() ?? []) {
      if (!isAway) queue.withdraw(route);
      else if (this.#calls?.has(route)) queue.offer(route); // the end of one call may have ended others
    }
  }

  /** Ends the calls between two rounds: there will be no next round. */
  dismiss(error: GatewayError): void {
    for (const reservation of [...(this.#reservations ?? [])]) reservation.end(perhapsDelivered(error));
  }

  end(error: GatewayError): void {
    for (const route of this.#calls?.values() ?? []) route.refuse(error);
    this.dismiss(error);
  }

  /** Releases what is not needed without calls. */
  park(): void {
    this.#calls = undefined;
    this.#reservations = undefined;
  }
}

/**
 * The reservation of a call between two of its rounds: while its client is asked, its instance counts it as a call that is under
 * way, and its conversation stays open. The call fails when there is no conversation left to continue in.
 */
export class HeldReservation {
  readonly #calls: SessionCalls;
  /** Undefined when the asking backend is unknown: then the call continues at the binding of its session. */
  readonly #binding: Binding | undefined;
  readonly #lost: (error: GatewayError) => void;
  readonly #watching = new Subscription();
  #isLost = false;
  #isOver = false;

  /** Reserves from now on, until `leave`. */
  constructor(calls: SessionCalls, binding: Binding | undefined, lost: (error: GatewayError) => void) {
    this.#calls = calls;
    this.#binding = binding;
    this.#lost = lost;
    binding?.take();
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    return this.#calls.exchange(request, this.#binding);
  }

  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watching.unsubscribe();
    this.#binding?.release();
    this.#calls.left(this);
  }

  /**
   * From now on `lost` may be called, even before this returns. `isContinuation`: the call already has a reservation there, and
   * this is its next round.
   */
  watch(ownerId: string, isContinuation: boolean): void {
    const binding = this.#binding;
    if (binding === undefined) return;
    const gone = (): void => {
      if (this.#calls.isBoundTo(binding)) this.end(conversationLost(binding));
    };
    const refused = (thrown: unknown): void => this.end(asGatewayError(thrown));
    const place = binding.ref
      .reserve(ownerId, isContinuation, binding.upstream)
      .subscribe({ complete: gone, error: refused });
    this.#watching.add(place);
    const { closed$ } = binding.upstream ?? {};
    const over = (): void => {
      place.unsubscribe(); // also where the call can continue elsewhere
      gone();
    };
    if (closed$ !== undefined)
      this.#watching.add(closed$.subscribe({ next: over, complete: over, error: over }));
  }

  /** There will be no next round. A call whose conversation is over fails with that error instead. */
  end(error: GatewayError): void {
    const binding = this.#binding;
    if (this.#isOver || this.#isLost) return;
    this.#isLost = true;
    this.#lost(binding?.isIntact === false ? conversationLost(binding) : error);
    this.leave(); // afterwards: callers are answered before their session ends
  }
}

/** The same error as for a call that was under way there. */
function conversationLost({ ref }: Binding): GatewayError {
  const gone = backendUnavailable('it went away before the call went on', { delivered: 'unknown' });
  return atInstance(gone, ref.id);
}
