// The route of one call of a session: to the binding of the session, for which it waits, and after a move to the new one. A failed
// call is repeated if it did not arrive, or, once, if it may be made twice. Everything else is in calls/call.ts. Source: ADR 71.

import { Observable, of } from 'rxjs';
import type { Linked } from '../../domain/call-map.ts';
import { capacityYielded } from '../../domain/error-catalogue.ts';
import {
  atInstance,
  type GatewayError,
  isBackendAnswer,
  moreTelling,
  perhapsDelivered,
} from '../../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { listOf } from '../../domain/mcp.ts';
import { isRepeatAllowed } from '../calls/retry.ts';
import {
  type AttemptPlan,
  BoundRoute,
  type CallRoute,
  type RouteRetry,
  type RunningCall,
  type Tried,
} from '../calls/routes.ts';
import type { QueueTarget, YieldingCall } from '../calls/wait-queue.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { isAboutTask, NO_TASKS } from '../stateless/stateless-routing.ts';
import type { Binding } from './bindings.ts';
import { asksForLog, isSafeToRepeat, setsClientState } from './client-state.ts';
import type { SessionBinding } from './session-binding.ts';

/**
 * Wait before a failed call is repeated, in ms, the factor for each further wait, and the number of repeats. Meanwhile a failure
 * of the instance is noticed, and the session moves.
 */
const FIRST_WAIT_MS = 5;
const WAIT_FACTOR = 5;
const MOST_REPEATS = 3;

export class SessionRoute implements CallRoute, YieldingCall, Linked {
  readonly #sessionBinding: SessionBinding;
  readonly #request: ExchangeRequest;
  /** Where the call has a reservation: it continues there for as long as that lasts, even if the instance takes no new calls. */
  readonly reservation: Binding | undefined;
  links: Linked['links'];
  /** The last event that its client got. */
  lastEvent: ExchangeEvent | undefined;
  #call: RunningCall | undefined;
  #current: { readonly binding: Binding; readonly route: BoundRoute } | undefined;
  /** The binding of the attempt; undefined while the call waits for one, and after its end. */
  binding: Binding | undefined;
  #needsDedicated = false;
  #repeats = 0;
  /** Wait before the next attempt, in ms. */
  #pauseMs: number | undefined;
  /** This call has made the session move. */
  #hasMoved = false;
  /** Bindings at other instances, for attempts beside a silent one. */
  #seconds: SecondBindings | undefined;
  /** That of the next attempt. */
  #second: Binding | undefined;
  /** The last failure, or the first one after which the call may have arrived. */
  #failure: { readonly error: GatewayError; readonly ref: InstanceRef } | undefined;

  constructor(sessionBinding: SessionBinding, request: ExchangeRequest, reservation: Binding | undefined) {
    this.#sessionBinding = sessionBinding;
    this.#request = request;
    this.reservation = reservation;
  }

  get bound(): InstanceRef | undefined {
    return this.#current?.route.bound;
  }

  begin(call: RunningCall): void {
    this.#call = call;
  }

  wait(): Observable<unknown> | undefined {
    const request = this.#request;
    const { reservation } = this;
    if (this.#pauseMs !== undefined) return this.#pause(this.#pauseMs);
    const binding = this.#isReserved ? reservation : this.#sessionBinding.usableBinding;
    if (binding === undefined) return this.#sessionBinding.untilBound(this.#needsDedicated);
    const wantsDedicated = isMixedTask(request, binding) || asksForLog(request, binding);
    if (wantsDedicated && !this.#needsDedicated && this.#sessionBinding.mayUpgrade) {
      this.#needsDedicated = true; // once: the session gets one, or the call is refused
      return this.#sessionBinding.untilBound(true);
    }
    if (this.#current?.binding !== binding) {
      const options = { isContinuation: binding === reservation, upstream: binding.upstream };
      this.#current = { binding, route: new BoundRoute(binding.ref, request, options) };
    }
    return undefined;
  }

  // A failed instance is asked again while the session is bound to it.
  next(): InstanceRef | undefined {
    this.#second = undefined;
    return this.#current?.route.next(undefined);
  }
  isOnlyFull(): boolean {
    return this.#current?.route.isOnlyFull(undefined) === true;
  }
  waitsFor(target: QueueTarget): boolean {
    return target === this.bound;
  }

  second(tried: Tried): InstanceRef | undefined {
    const { binding } = this;
    const request = this.#request;
    const { method } = request;
    // A cursor or a task in the answer is known at one instance only.
    const mayBeElsewhere = !setsClientState(method) && listOf(method) === undefined && !isAboutTask(request);
    if (binding === undefined || binding === this.reservation || !mayBeElsewhere) return undefined;
    this.#seconds ??= new SecondBindings(this.#sessionBinding, () => this.#call?.trySecond());
    this.#second = this.#seconds.next(binding, new Set(tried));
    return this.#second?.ref;
  }

  planFor(ref: InstanceRef): AttemptPlan {
    const request = this.#request;
    const binding = this.#current?.binding;
    if (binding === undefined) throw new Error('a call of a session waits for a binding');
    if (this.#second?.ref === ref) return this.#planForSecond(this.#second, binding);
    if (isMixedTask(request, binding)) return { request, answer: of(NO_TASKS) };
    const isRepeatable = isSafeToRepeat(request, ref); // before sending: afterwards the session that knew the tool may be gone
    if (!isRepeatable) this.#sessionBinding.countUnsafe(1);
    binding.take();
    this.binding = binding;
    const { upstream } = binding;
    return {
      receive: (event) => {
        this.lastEvent = event;
        return true;
      },
      ...(binding === this.reservation ? { request, upstream } : this.#sessionBinding.plan(request, binding)),
      failed: (error) => this.#failed(binding, isRepeatable, error),
      slow: (error) => isRepeatable && this.#slow(binding, error),
      ended: ({ error: failure }) => {
        if (!isRepeatable && failure?.delivered === 'no') this.#sessionBinding.countUnsafe(-1);
      },
    };
  }

  end(): void {
    this.#release();
    this.#seconds?.end();
  }

  // --- for the calls of its session, and for the queue -----------------------------------------------------------------

  /** The instance whose capacity the call uses: none while its backend waits for the client. */
  get target(): InstanceRef | undefined {
    return this.#call?.isPaused === true ? undefined : this.binding?.ref;
  }

  /** The client is away, and another call waits for the capacity. */
  yield(): void {
    this.#call?.giveUp(capacityYielded());
  }

  /** The session is over. A failure says more than that, unless another attempt is under way. */
  refuse(error: GatewayError): void {
    const failure = this.#failure;
    if (this.binding !== undefined) this.#call?.giveUp(perhapsDelivered(error));
    else this.#call?.giveUp(moreTelling(failure && atInstance(failure.error, failure.ref.id), error));
  }

  // ---------------------------------------------------------------------------------------------------------------------

  /** If it answers first, the call belongs to that binding: a next round is made there. */
  #planForSecond(second: Binding, first: Binding): AttemptPlan {
    this.#second = undefined;
    this.#seconds?.use(second);
    return {
      request: this.#request,
      upstream: second.upstream,
      receive: (event) => {
        if (this.binding !== second) {
          this.#release();
          second.take();
          this.binding = second;
        }
        this.lastEvent = event;
        return true;
      },
      failed: (error) => this.#failed(first, true, error),
    };
  }

  #release(): void {
    const binding = this.binding;
    this.binding = undefined;
    binding?.release();
  }

  get #isReserved(): boolean {
    const { reservation } = this;
    if (reservation?.isIntact !== true) return false;
    const { ref, upstream } = reservation;
    if (ref.acceptsCalls(upstream) || ref.state === 'draining') return true;
    return ref.state === 'unhealthy' && !this.#sessionBinding.mayMove; // an unhealthy instance may still answer
  }

  #pause(waitMs: number): Observable<unknown> {
    return new Observable((subscriber) =>
      this.#sessionBinding.deps.alarm(waitMs, () => {
        this.#pauseMs = undefined;
        subscriber.next(undefined);
      }),
    );
  }

  #failed(binding: Binding, isRepeatable: boolean, error: GatewayError): RouteRetry | undefined {
    const { code, delivered } = error;
    if (isBackendAnswer(error)) return undefined; // it would answer the same again
    if (code !== 'BACKEND_UNAVAILABLE' || !isRepeatAllowed(delivered, isRepeatable)) return undefined;
    const isFirst = this.#failure?.error.delivered !== 'unknown';
    const mayRepeat = this.#repeats < MOST_REPEATS && (isFirst || delivered === 'no');
    if (!mayRepeat && !this.#movesOn(binding)) return undefined;
    this.#repeatSoon(binding, error);
    return 'repeat';
  }

  /** The instance failed twice: the session moves. */
  #movesOn(binding: Binding): boolean {
    const failure = this.#failure;
    return failure?.error.delivered === 'unknown' && failure.ref === binding.ref && this.#movesFrom(binding);
  }

  /** A silent call is given up only where other calls get no answers either. */
  #slow(binding: Binding, error: GatewayError): boolean {
    if (!this.#sessionBinding.isEjected(binding) || !this.#movesFrom(binding)) return false;
    this.#repeatSoon(binding, error);
    return true;
  }

  /** Once: a call that fails everywhere does not move its session again and again. */
  #movesFrom(binding: Binding): boolean {
    if (this.#hasMoved || binding === this.reservation) return false;
    this.#hasMoved = this.#sessionBinding.abandon(binding);
    return this.#hasMoved;
  }

  #repeatSoon({ ref }: Binding, error: GatewayError): void {
    this.#release();
    if (this.#failure?.error.delivered !== 'unknown') this.#failure = { error, ref };
    this.#pauseMs = FIRST_WAIT_MS * WAIT_FACTOR ** this.#repeats;
    this.#repeats += 1;
  }
}

/** The bindings that one call finds at other instances, while the session stays where it is. They end with the call. Source: ADR 103. */
class SecondBindings {
  readonly #sessionBinding: SessionBinding;
  readonly #found: () => void;
  readonly #over = new AbortController();
  #isSearching = false;
  #ready: Binding | undefined;
  readonly #all: Binding[] = [];

  /** `found`: called when `next` has a binding. */
  constructor(sessionBinding: SessionBinding, found: () => void) {
    this.#sessionBinding = sessionBinding;
    this.#found = found;
  }

  /** A binding that was not used yet; else looks for one, and returns undefined. */
  next(silent: Binding, without: ReadonlySet<string>): Binding | undefined {
    if (this.#ready !== undefined || this.#isSearching) return this.#ready;
    const search = this.#sessionBinding.findSecond(silent, without, this.#over.signal);
    this.#isSearching = search !== undefined;
    search?.then(
      (binding) => this.#take(binding),
      () => {
        this.#isSearching = false; // the first attempt continues
      },
    );
    return undefined;
  }

  use(binding: Binding): void {
    if (binding === this.#ready) this.#ready = undefined;
  }

  /** A binding is closed when its last call has ended. */
  end(): void {
    this.#over.abort();
    for (const binding of this.#all.splice(0)) binding.retire();
  }

  #take(binding: Binding): void {
    this.#isSearching = false;
    this.#all.push(binding);
    this.#ready = binding;
    if (this.#over.signal.aborted) this.end();
    else this.#found();
  }
}

/** True for a task at a backend that cannot tell its clients apart. */
function isMixedTask(request: ExchangeRequest, { isShared, peer }: Binding): boolean {
  return isAboutTask(request) && isShared && peer.era === 'legacy';
}
