// Where a call may go next, and how it travels there. A balanced call goes to any instance of its template, a bound one to one
// instance; calls of stateless clients and of sessions have routes of their own (stateless-route.ts, session-route.ts). A route
// counts no call: the call does, in the block in which it asks its route. Source: ADR 68, ADR 71.

import type { Observable } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest, FinalEvent } from '../../domain/exchange.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { ExchangeEnding } from './call-reply.ts';
import { isRepeatable } from './retry.ts';
import type { QueuedPlace } from './wait-queue.ts';

/** Ids of instances that are not asked again; undefined while there is none. */
export type Tried = ReadonlySet<string> | undefined;

/** Of one call. */
export interface CallRoute {
  /** The only instance that may answer now: the call itself goes to no other. */
  readonly bound: InstanceRef | undefined;
  /** Called once, before anything else. `giveUp` ends the call with an error. Default: the route never does. */
  begin?(giveUp: (error: GatewayError) => void): void;
  /**
   * Set when the call has to wait before it asks for an instance: emits once when it is to ask again, or errors with the refusal.
   * Cold. Default: it never waits.
   */
  wait?(): Observable<unknown> | undefined;
  /** Undefined when no instance can take it now. The send that counts it is to follow in the same synchronous block: see Pool.pick. */
  next(tried: Tried): InstanceRef | undefined;
  /** True when there is an instance that may take it and is only full: waiting may help. */
  isOnlyFull(tried: Tried): boolean;
  /** True when the call can use room at that instance. */
  waitsFor(place: QueuedPlace, tried: Tried): boolean;
  /** True when the call may be sent there beside a silent attempt elsewhere, in the same synchronous block. */
  mayBeSecond(ref: InstanceRef): boolean;
  /** How it travels to the chosen instance. Throws like an opening. */
  passageTo(ref: InstanceRef, tried: Tried): Passage;
  /** The call is over. Gives back an unused passage. */
  end(): void;
}

/** One way to one instance, for one attempt. */
export interface Passage {
  /** What is sent. */
  readonly request: ExchangeRequest;
  /** The conversation it goes through; undefined: the instance's own. */
  readonly upstream?: Upstream | undefined;
  /** Set when something has to be opened before: emits once when `next` is to be asked again, or errors like an opening. Cold. */
  readonly opening?: Observable<unknown>;
  /** Set when there is nothing to send: emits the answer, or errors like an attempt. Cold. */
  readonly answer?: Observable<FinalEvent>;
  /** False for messages that the client must not get. */
  readonly receive?: (event: ExchangeEvent) => boolean;
  /** The attempt failed before its first message. Default: the call decides. */
  readonly failed?: (error: GatewayError) => GoesOn | undefined;
  /** No message came for a long time; `error` says how long. True: the call is to leave this attempt, and to ask its route again. */
  readonly slow?: (error: GatewayError) => boolean;
  /** Called in the teardown of the exchange. */
  readonly ended?: (ending: ExchangeEnding) => void;
}

/**
 * How a call goes on although its attempt failed. `reopen`: nothing was tried, and the same instance is asked again through another
 * passage. `repeat`: the route repeats it, within the budget.
 */
export type GoesOn = 'reopen' | 'repeat';

export class BalancedRoute implements CallRoute {
  readonly bound = undefined;
  readonly #pool: Group['pool'];
  readonly #request: ExchangeRequest;

  constructor({ pool }: Group, request: ExchangeRequest) {
    this.#pool = pool;
    this.#request = request;
  }

  /** An instance below its capacity; if all are full, one whose reserve is open to the owner of the request. Source: ADR 41. */
  next(tried: Tried): InstanceRef | undefined {
    const ownerId = this.#request.caller ?? ANONYMOUS.id;
    const mayRepeat = (ref: InstanceRef) => isRepeatable(this.#request, ref);
    return (
      this.#pool.pick(tried, mayRepeat) ??
      this.#pool.pick(tried, mayRepeat, (ref) => ref.hasPlaceFor(ownerId))
    );
  }

  isOnlyFull(tried: Tried): boolean {
    return this.#pool.isFull(tried);
  }

  waitsFor(place: QueuedPlace, tried: Tried): boolean {
    return this.#pool.candidates.some((ref) => ref === place && this.#pool.mayBePicked(ref, tried));
  }

  mayBeSecond(): boolean {
    return true;
  }

  passageTo(): Passage {
    return { request: this.#request };
  }

  end(): void {}
}

export interface BoundOptions {
  /** The instance may answer although it takes no new calls: the call goes on with what is under way there. */
  readonly goesOn: boolean;
  /** The conversation it goes through. Default: the instance's own. */
  readonly upstream?: Upstream | undefined;
}

export class BoundRoute implements CallRoute {
  readonly bound: InstanceRef;
  readonly #request: ExchangeRequest;
  readonly #options: BoundOptions;

  constructor(bound: InstanceRef, request: ExchangeRequest, options: BoundOptions) {
    this.bound = bound;
    this.#request = request;
    this.#options = options;
  }

  next(tried: Tried): InstanceRef | undefined {
    const hasPlace = this.bound.hasPlaceFor(this.#request.caller ?? ANONYMOUS.id);
    return hasPlace && this.isOpen(tried) ? this.bound : undefined;
  }

  /** True when the instance may take the call, full or not. */
  isOpen(tried: Tried): boolean {
    const { goesOn, upstream } = this.#options;
    const isServing = this.bound.takes(upstream) || (goesOn && UNDER_WAY.has(this.bound.state));
    return isServing && !tried?.has(this.bound.id);
  }

  isOnlyFull(tried: Tried): boolean {
    return this.isOpen(tried) && this.bound.inFlight >= this.bound.capacity;
  }

  waitsFor(place: QueuedPlace): boolean {
    return place === this.bound;
  }

  mayBeSecond(): boolean {
    return false;
  }

  passageTo(): Passage {
    return { request: this.#request, upstream: this.#options.upstream };
  }

  end(): void {}
}

/** States of an instance that takes no new calls, and may go on with what is under way there. */
const UNDER_WAY: ReadonlySet<InstanceState> = new Set(['draining', 'unhealthy']);
