// The calls of one session: those under way, and the reservations of those between two rounds. session-route.ts decides where a
// call goes.

import { Observable, Subscription } from 'rxjs';
import { LinkedSet } from '../../domain/call-map.ts';
import { backendUnavailable, sessionLost } from '../../domain/error-catalogue.ts';
import { asGatewayError, atInstance, type GatewayError, perhapsDelivered } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { WaitQueue } from '../calls/wait-queue.ts';
import type { Binding } from './client-session-types.ts';
import { type RouteHost, SessionRoute } from './session-route.ts';

/** Where calls are made. */
export interface CallsPlace extends RouteHost {
  readonly binding: Binding | undefined;
  /** The queue of its template, where calls of a client that is away offer their places. */
  readonly queue: Pick<WaitQueue, 'offer' | 'withdraw'>;
  /** One call on this route. */
  carry(request: ExchangeRequest, route: SessionRoute): Observable<Answer>;
}

/** Whose calls they are. */
export interface CallsOwner {
  readonly ownerId: string;
  /** Why the session is over, as a clause; undefined while it is not. */
  readonly endedFor: string | undefined;
  /** A call begins. */
  used(): void;
  /** A call has ended, or gives up its place. */
  rested(): void;
}

export class SessionCalls {
  readonly #place: CallsPlace;
  readonly #owner: CallsOwner;
  // A session that rests has none: what only calls need is made at the first call.
  #calls: LinkedSet<SessionRoute> | undefined;
  #reservations: Set<HeldReservation> | undefined;
  #isAway = false;

  constructor(place: CallsPlace, owner: CallsOwner) {
    this.#place = place;
    this.#owner = owner;
  }

  /** Includes calls that are about to go on. */
  get size(): number {
    return (this.#calls?.size ?? 0) + (this.#reservations?.size ?? 0);
  }
  /** True when some calls are at an instance, or are about to go on there. */
  get arePlaced(): boolean {
    if (this.#reservations !== undefined && this.#reservations.size > 0) return true;
    return (this.#calls?.values() ?? []).some(({ binding }) => binding !== undefined);
  }

  /** True when there is one call, which is under way at that place. */
  soleAt(binding: Binding): boolean {
    return this.#calls?.size === 1 && this.#calls.first?.binding === binding;
  }

  /** See ClientSession.exchange. `reservation`: that of the call, for as long as it lasts. */
  exchange(request: ExchangeRequest, reservation?: Binding): Observable<Answer> {
    return new Observable((subscriber) => {
      const { endedFor } = this.#owner;
      if (endedFor !== undefined) {
        subscriber.error(sessionLost(endedFor));
        return;
      }
      this.#owner.used();
      const route = new SessionRoute(this.#place, request, reservation);
      const call = new Subscription();
      this.#calls ??= new LinkedSet();
      this.#calls.add(route);
      subscriber.add(() => {
        if (this.#isAway) this.#place.queue.withdraw(route);
        call.unsubscribe();
        this.#calls?.delete(route);
        this.#owner.rested();
      });
      call.add(
        this.#place.carry(request, route).subscribe({
          next: (answer) => subscriber.next(route.deliver(answer)),
          error: (thrown: unknown) => subscriber.error(thrown),
          complete: () => subscriber.complete(),
        }),
      );
    });
  }

  /** See Session.reserve of protocol/ports.ts. */
  reserve(answer: Answer, lost: (error: GatewayError) => void): HeldReservation {
    const place = this.#place;
    // Not by the id of the instance: its successor may have the same.
    const route = this.#calls?.values().find(({ lastAnswer }) => lastAnswer === answer);
    const binding = route?.binding;
    const reservation: HeldReservation = new HeldReservation({
      binding,
      ownerId: this.#owner.ownerId,
      isContinuation: binding !== undefined && route?.reservation === binding,
      exchange: (request) => this.exchange(request, binding),
      isBound: () => place.binding === binding && !place.mayMove,
      lost,
      left: () => {
        this.#reservations?.delete(reservation);
        this.#owner.rested();
      },
    });
    this.#reservations ??= new Set();
    this.#reservations.add(reservation);
    reservation.watch();
    return reservation;
  }

  /** The client is away, or is back: while it is away its calls end as soon as others wait for their places. */
  setAway(isAway: boolean): void {
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    const { queue } = this.#place;
    for (const route of this.#calls?.values() ?? []) {
      if (!isAway) queue.withdraw(route);
      else if (this.#calls?.has(route)) queue.offer(route); // one that ended before it may have ended others
    }
  }

  /** Answers the calls that are between two rounds: there will be no next round. */
  dismiss(error: GatewayError): void {
    for (const reservation of [...(this.#reservations ?? [])]) reservation.end(perhapsDelivered(error));
  }

  /** Answers all of them. */
  end(error: GatewayError): void {
    for (const route of this.#calls?.values() ?? []) route.refuse(error);
    this.dismiss(error);
  }

  /** Gives up what is not needed without calls. */
  rest(): void {
    this.#calls = undefined;
    this.#reservations = undefined;
  }
}

export interface HeldReservationDeps {
  /** Undefined when the asking backend is unknown: then the call goes on where its session is. */
  readonly binding: Binding | undefined;
  readonly ownerId: string;
  /** The call already has a reservation there: this is its next round. */
  readonly isContinuation: boolean;
  readonly exchange: (request: ExchangeRequest) => Observable<Answer>;
  /** True when the call can go on nowhere else. */
  readonly isBound: () => boolean;
  readonly lost: (error: GatewayError) => void;
  readonly left: () => void;
}

/**
 * The reservation of a call between two of its rounds: while its client is asked, its instance counts it as a call that is under
 * way, and its conversation stays open. The call fails when there is no conversation left to continue in.
 */
export class HeldReservation {
  readonly #deps: HeldReservationDeps;
  readonly #watching = new Subscription();
  #isLost = false;
  #isOver = false;

  /** The place is kept from now on, until `leave`. */
  constructor(deps: HeldReservationDeps) {
    this.#deps = deps;
    deps.binding?.take();
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    return this.#deps.exchange(request);
  }

  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watching.unsubscribe();
    this.#deps.binding?.release();
    this.#deps.left();
  }

  /** From now on `lost` may be called, even before this returns. */
  watch(): void {
    const { binding, ownerId, isContinuation } = this.#deps;
    if (binding === undefined) return;
    const look = (): void => {
      if (this.#deps.isBound()) this.end(placeGone(binding));
    };
    const refused = (thrown: unknown): void => this.end(asGatewayError(thrown));
    const place = binding.ref
      .reserve(ownerId, isContinuation, binding.upstream)
      .subscribe({ complete: look, error: refused });
    this.#watching.add(place);
    const { closed$ } = binding.upstream ?? {};
    const over = (): void => {
      place.unsubscribe(); // also where the call goes on elsewhere: nothing goes on here
      look();
    };
    if (closed$ !== undefined)
      this.#watching.add(closed$.subscribe({ next: over, complete: over, error: over }));
  }

  /** There will be no next round. A call whose conversation is over fails with that instead. */
  end(error: GatewayError): void {
    const { binding, lost } = this.#deps;
    if (this.#isOver || this.#isLost) return;
    this.#isLost = true;
    lost(binding?.isIntact === false ? placeGone(binding) : error);
    this.leave(); // behind it: callers are answered before their session ends
  }
}

/** As for a call that was under way there. */
function placeGone({ ref }: Binding): GatewayError {
  const gone = backendUnavailable('it went away before the call went on', { delivered: 'unknown' });
  return atInstance(gone, ref.id);
}
