// The places of calls between two rounds at their instance, which waits for them when it leaves or restarts like for calls in
// flight. Whose calls they are, and where they go on, is the business of whoever subscribes.

import { Observable, type Subscription } from 'rxjs';
import type { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { parkedCallsFull, parkedShareLimit } from '../../domain/session-errors.ts';
import type { InstanceActor } from './instance.machine.ts';
import { OwnerShares } from './owner-shares.ts';
import type { SessionLink } from './session.ts';

/** One call; `link` is the session of the backend that it waits in; undefined in a conversation that stands alone. */
interface Staying {
  readonly link: SessionLink | undefined;
  readonly end: () => void;
}

export interface ReservationOptions {
  /** It has a place already. */
  readonly goesOn: boolean;
  /** It waits in a conversation that does. Default false. */
  readonly standsAlone?: boolean | undefined;
}

/** Those of one instance. It is observed once for all of them: what observes an actor is told of each event of each call. */
export class InstanceReservations {
  readonly #actor: InstanceActor;
  readonly #links$: Observable<SessionLink | undefined>;
  readonly #stays = new Set<Staying>();
  readonly #shares = new OwnerShares(LIMITS.parkedCalls);
  #watching: Subscription | undefined;

  /** `links$` tells when the actor has another session, or none; it ends with the actor. */
  constructor(actor: InstanceActor, links$: Observable<SessionLink | undefined>) {
    this.#actor = actor;
    this.#links$ = links$;
  }

  /** See InstanceRef.stay. */
  stay(ownerId: string, { goesOn, standsAlone = false }: ReservationOptions): Observable<never> {
    return new Observable((subscriber) => {
      const link = standsAlone ? undefined : this.#linkNow;
      const full = goesOn ? undefined : this.#whyFull(ownerId);
      if (this.#isEnded || (link === undefined && !standsAlone)) subscriber.complete();
      else if (full !== undefined) subscriber.error(full);
      else {
        const staying = { link, end: () => subscriber.complete() };
        this.#watch();
        this.#begin(staying, ownerId);
        subscriber.add(() => this.#end(staying, ownerId));
      }
    });
  }

  get #isEnded(): boolean {
    return this.#actor.getSnapshot().status !== 'active';
  }

  /** That of an actor that has ended is over. */
  get #linkNow(): SessionLink | undefined {
    return this.#isEnded ? undefined : this.#actor.getSnapshot().context.link;
  }

  #whyFull(ownerId: string): GatewayError | undefined {
    if (this.#shares.isFull(ownerId)) return parkedShareLimit(this.#shares.share);
    return this.#stays.size >= LIMITS.parkedCalls ? parkedCallsFull(LIMITS.parkedCalls) : undefined;
  }

  #watch(): void {
    if (this.#watching !== undefined) return;
    const look = (): void => this.#look();
    this.#watching = this.#links$.subscribe({ next: look, complete: look, error: look });
  }

  #begin(staying: Staying, ownerId: string): void {
    this.#stays.add(staying);
    this.#shares.take(ownerId);
    this.#actor.send({ type: 'stay.began' });
  }

  #end(staying: Staying, ownerId: string): void {
    this.#stays.delete(staying);
    this.#shares.giveBack(ownerId);
    this.#actor.send({ type: 'stay.ended' });
    if (this.#stays.size > 0) return;
    this.#watching?.unsubscribe();
    this.#watching = undefined;
  }

  /** The session is asked for anew: what was told may be older than those who have just begun. */
  #look(): void {
    for (const { link, end } of this.#stays) {
      if (this.#isEnded || (link !== undefined && link !== this.#linkNow)) end();
    }
  }
}
