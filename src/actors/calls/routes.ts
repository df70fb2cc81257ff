// Routes: the next instance of a call, and how the call travels there. The call counts itself in the synchronous block in which it
// asks its route. Other routes: stateless-clients.ts, session-route.ts. Source: ADR 68, ADR 71.

import type { Observable } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { ExchangeEvent, ExchangeRequest, FinalEvent } from '../../domain/exchange.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { CallUpstream } from '../../transports/transport.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { ExchangeEnding } from './call-events.ts';
import { isRepeatable } from './retry.ts';
import type { QueueTarget } from './wait-queue.ts';

/** Ids of the instances that a call does not try again; undefined while there are none. */
export type Tried = ReadonlySet<string> | undefined;

export interface CallRoute {
  /** The only instance that may answer now: the call is sent to no other. */
  readonly bound: InstanceRef | undefined;
  /** Called once, first. */
  begin?(call: RunningCall): void;
  /**
   * Set when the call has to wait before an instance can be chosen: emits once when the call is to ask again, or errors with the
   * refusal. Cold. Default: the call never waits.
   */
  wait?(): Observable<unknown> | undefined;
  /** Undefined when no instance can take the call now. The send must follow in the same synchronous block: see Pool.pick. */
  next(tried: Tried): InstanceRef | undefined;
  /** True when an instance that may take the call is only full: waiting may help. */
  isOnlyFull(tried: Tried): boolean;
  /** True when the call can use capacity of that instance. */
  waitsFor(target: QueueTarget, tried: Tried): boolean;
  /** True when the call may be sent there beside a silent attempt elsewhere, in the same synchronous block. Default: never. */
  mayBeSecond?(ref: InstanceRef): boolean;
  /**
   * The instance for an attempt beside silent ones, for which the route has taken from the retry budget. Undefined when there is
   * none now; the route may call `RunningCall.trySecond` later. Default: `next` and `mayBeSecond`.
   */
  second?(tried: Tried): InstanceRef | undefined;
  /** How the call travels to the chosen instance. Throws like an opening. */
  planFor(ref: InstanceRef, tried: Tried): AttemptPlan;
  /** The call is over. Releases a plan that was not used. Default: a plan takes nothing. */
  end?(): void;
}

/** What is fixed before a call begins. */
export interface CallInput {
  readonly group: Group;
  readonly request: ExchangeRequest;
  readonly route: CallRoute;
  /** The tool that an instance must have; undefined when any instance will do, or the backend itself may reject the tool. */
  readonly wantedTool: string | undefined;
  readonly timeoutMs: number;
}

/** The call as its route sees it. */
export interface RunningCall {
  /** True while the backend waits for the client: the call uses no capacity. */
  readonly isPaused: boolean;
  giveUp(error: GatewayError): void;
  /** Asks for `second` again, if the call is still silent. */
  trySecond(): void;
}

export interface AttemptPlan {
  readonly request: ExchangeRequest;
  /** The conversation for it; undefined: that of the instance. */
  readonly upstream?: CallUpstream | undefined;
  /** Set when something has to be opened first: emits once when `next` is to be called again, or errors like an opening. Cold. */
  readonly opening?: Observable<unknown>;
  /** Set when nothing is sent: emits the answer, or errors like an attempt. Cold. */
  readonly answer?: Observable<FinalEvent>;
  /** False for messages that the client must not get. */
  readonly receive?: (event: ExchangeEvent) => boolean;
  /** The attempt failed before its first message. Default: the call decides. */
  readonly failed?: (error: GatewayError) => RouteRetry | undefined;
  /** No message came for a long time; `error` says how long. True: the call ends this attempt and asks its route again. */
  readonly slow?: (error: GatewayError) => boolean;
  readonly ended?: (ending: ExchangeEnding) => void;
}

/** `reopen`: nothing was tried; the same instance is asked again with another plan. `repeat`: repeated within the budget. */
export type RouteRetry = 'reopen' | 'repeat';

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
      this.#pool.pick(tried, mayRepeat, (ref) => ref.hasCapacityFor(ownerId))
    );
  }

  isOnlyFull(tried: Tried): boolean {
    return this.#pool.isFull(tried);
  }

  waitsFor(target: QueueTarget, tried: Tried): boolean {
    return this.#pool.mayBePicked(target, tried);
  }

  mayBeSecond(): boolean {
    return true;
  }

  planFor(): AttemptPlan {
    return { request: this.#request };
  }
}

export interface BoundOptions {
  /** The instance may answer although it takes no new calls: the call continues something that is under way there. */
  readonly isContinuation: boolean;
  readonly upstream?: CallUpstream | undefined;
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
    const hasCapacity = this.bound.hasCapacityFor(this.#request.caller ?? ANONYMOUS.id);
    return hasCapacity && this.isOpen(tried) ? this.bound : undefined;
  }

  /** True when the instance may take the call, full or not. */
  isOpen(tried: Tried): boolean {
    const { isContinuation, upstream } = this.#options;
    const isServing =
      this.bound.acceptsCalls(upstream) || (isContinuation && CONTINUABLE.has(this.bound.state));
    return isServing && !tried?.has(this.bound.id);
  }

  isOnlyFull(tried: Tried): boolean {
    return this.isOpen(tried) && this.bound.inFlight >= this.bound.capacity;
  }

  waitsFor(target: QueueTarget): boolean {
    return target === this.bound;
  }

  planFor(): AttemptPlan {
    return { request: this.#request, upstream: this.#options.upstream };
  }
}

/** States of an instance that takes no new calls, but may continue what is under way there. */
const CONTINUABLE: ReadonlySet<InstanceState> = new Set(['draining', 'unhealthy']);
