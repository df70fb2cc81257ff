// Reservations of calls between two rounds at their instance, which waits for them when it leaves or restarts as for calls in
// flight. The subscriber decides whose calls they are, and where they go on.

import { Observable, type Subscription } from 'rxjs';
import type { CallCounter } from './call-counter.ts';
import type { InstanceActor } from './instance.machine.ts';
import type { SessionLink } from './session.ts';

/** One reservation; `link` is the session of the backend that it waits in; undefined in a conversation that stands alone. */
interface ReservationEntry {
  readonly link: SessionLink | undefined;
  readonly end: () => void;
}

export interface ReservationOptions {
  /** It has a place already. */
  readonly goesOn: boolean;
  /** It waits in a conversation that stands alone. Default false. */
  readonly standsAlone?: boolean | undefined;
}

/** The reservations of one instance, which is observed once for all of them. */
export class InstanceReservations {
  readonly #actor: InstanceActor;
  readonly #links$: Observable<SessionLink | undefined>;
  readonly #reservations = new Set<ReservationEntry>();
  readonly #ended: () => void;
  #watching: Subscription | undefined;

  /** `links$` emits when the actor has another session, or none; it ends with the actor. `ended`: one of them has ended. */
  constructor(actor: InstanceActor, links$: Observable<SessionLink | undefined>, ended: () => void) {
    this.#actor = actor;
    this.#links$ = links$;
    this.#ended = ended;
  }

  /** See InstanceRef.reserve. */
  reserve(ownerId: string, { goesOn, standsAlone = false }: ReservationOptions): Observable<never> {
    return new Observable((subscriber) => {
      const link = standsAlone ? undefined : this.#linkNow;
      const full = goesOn ? undefined : this.#calls.reservationRefusal(ownerId);
      if (this.#isEnded || (link === undefined && !standsAlone)) subscriber.complete();
      else if (full !== undefined) subscriber.error(full);
      else {
        const reservation = { link, end: () => subscriber.complete() };
        this.#watch();
        this.#begin(reservation, ownerId);
        subscriber.add(() => this.#end(reservation, ownerId));
      }
    });
  }

  get #isEnded(): boolean {
    return this.#actor.getSnapshot().status !== 'active';
  }

  /** The reservation of an actor that has ended is over. */
  get #linkNow(): SessionLink | undefined {
    return this.#isEnded ? undefined : this.#actor.getSnapshot().context.link;
  }

  get #calls(): CallCounter {
    return this.#actor.getSnapshot().context.calls;
  }

  #watch(): void {
    if (this.#watching !== undefined) return;
    const look = (): void => this.#look();
    this.#watching = this.#links$.subscribe({ next: look, complete: look, error: look });
  }

  #begin(reservation: ReservationEntry, ownerId: string): void {
    this.#reservations.add(reservation);
    this.#calls.reserve(ownerId);
  }

  #end(reservation: ReservationEntry, ownerId: string): void {
    this.#reservations.delete(reservation);
    this.#calls.cancelReservation(ownerId);
    this.#ended();
    if (this.#reservations.size > 0) return;
    this.#watching?.unsubscribe();
    this.#watching = undefined;
  }

  /** Reads the session anew: the emitted one may be older than reservations that have just begun. */
  #look(): void {
    for (const { link, end } of this.#reservations) {
      if (this.#isEnded || (link !== undefined && link !== this.#linkNow)) end();
    }
  }
}
