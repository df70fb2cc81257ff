// The reservation of a call between two of its rounds.

import { type Observable, Subscription } from 'rxjs';
import type { Linked } from '../../domain/call-map.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { asGatewayError, atInstance, type GatewayError } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { Binding } from './bindings.ts';

/** The session of a reservation. */
export interface ReservingSession {
  readonly ownerId: string;
  /** The next round; `reservation` as in SessionRoute. */
  nextRound(request: ExchangeRequest, reservation: Binding | undefined): Observable<Answer>;
  /** True when a call with a reservation there can continue nowhere else. */
  isBoundTo(binding: Binding): boolean;
  left(reservation: HeldReservation): void;
}

/**
 * While its client is asked, the instance counts the call as under way, and its conversation is kept open. The call fails when
 * there is no conversation left to continue in.
 */
export class HeldReservation implements Linked {
  links: Linked['links'];
  readonly #session: ReservingSession;
  /** Undefined when the asking backend is unknown: then the call continues at the binding of its session. */
  readonly #binding: Binding | undefined;
  readonly #lost: (error: GatewayError) => void;
  readonly #watching = new Subscription();
  #isOver = false;

  /** Reserves from now on, until `leave`. */
  constructor(session: ReservingSession, binding: Binding | undefined, lost: (error: GatewayError) => void) {
    this.#session = session;
    this.#binding = binding;
    this.#lost = lost;
    binding?.take();
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    return this.#session.nextRound(request, this.#binding);
  }

  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watching.unsubscribe();
    this.#binding?.release();
    this.#session.left(this);
  }

  /**
   * From now on `lost` may be called, even before this returns. `isContinuation`: the call already has a reservation there, and
   * this is its next round.
   */
  watch(isContinuation: boolean): void {
    const binding = this.#binding;
    if (binding === undefined) return;
    const lost = (): void => {
      if (this.#session.isBoundTo(binding)) this.end(conversationLost(binding));
    };
    const refused = (thrown: unknown): void => this.end(asGatewayError(thrown));
    const { ref, upstream } = binding;
    const reservation$ = ref.reserve(this.#session.ownerId, isContinuation, upstream);
    this.#watching.add(reservation$.subscribe({ complete: lost, error: refused }));
  }

  /** There will be no next round. A call whose conversation is over fails with that error instead. */
  end(error: GatewayError): void {
    const binding = this.#binding;
    if (this.#isOver) return;
    this.#lost(binding?.isIntact === false ? conversationLost(binding) : error);
    this.leave(); // afterwards: callers are answered before their session ends
  }
}

/** The same error as for a call that was under way there. */
function conversationLost({ ref }: Binding): GatewayError {
  const gone = backendUnavailable('its conversation was lost before the call continued', {
    delivered: 'unknown',
  });
  return atInstance(gone, ref.id);
}
