// The place of a call between two of its rounds: while its client is asked, its instance counts it as a call that is under
// way, and its conversation stays open. The call fails when there is no conversation left to go on in.

import { type Observable, Subscription } from 'rxjs';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { asGatewayError, atInstance, type GatewayError } from '../../domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { Binding, SessionReservation } from './client-session-types.ts';

export interface HeldReservationDeps {
  /** Undefined when the asking backend is unknown: then the call goes on where its session is. */
  readonly binding: Binding | undefined;
  readonly ownerId: string;
  /** The call already has a reservation there: this is its next round. */
  readonly goesOn: boolean;
  readonly exchange: (request: ExchangeRequest) => Observable<Answer>;
  /** True when the call can go on nowhere else. */
  readonly isBound: () => boolean;
  readonly lost: (error: GatewayError) => void;
  readonly left: () => void;
}

export class HeldReservation implements SessionReservation {
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
    const { binding, ownerId, goesOn } = this.#deps;
    if (binding === undefined) return;
    const look = (): void => {
      if (this.#deps.isBound()) this.end(placeGone(binding));
    };
    const refused = (thrown: unknown): void => this.end(asGatewayError(thrown));
    const place = binding.ref
      .reserve(ownerId, goesOn, binding.upstream)
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
