// The retries of one call, and the retry budget of the gateway. domain/calls/retry-rules.ts decides; a route says
// at which instance (call-route.ts). Source: ADR 9.

import { Observable } from 'rxjs';
import { RecentCount } from '../../balancing/recent-count.ts';
import { type DecisionAtBound, decideAtBound } from '../../domain/calls/retry-rules.ts';
import { atInstance, type GatewayError, perhapsDelivered } from '../../domain/errors/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { CallEvents } from './call-events.ts';
import type { DeadlineDeps } from './deadline.ts';

/** After this time an instance knows whether the way to its node is lost, in ms. */
const WAY_KNOWN_MS = 10;

/** An attempt, or an opening before one. */
export interface FailedAttempt {
  readonly ref: InstanceRef;
  readonly number: number;
  /** A repeat does no harm. */
  readonly isRepeatable: boolean;
}

/** The failures, retries and hedges of one call. */
export class Retries {
  readonly #budget: RetryBudget;
  readonly #events: CallEvents;
  /** Retries and hedges that may still be made. */
  attemptsLeft: number;
  /** The last failure of an attempt, or of the opening before it. */
  failure: GatewayError | undefined;
  /** The attempt that failed last and its error, until the retry is reported. */
  #last: { readonly failed: FailedAttempt; readonly error: GatewayError } | undefined;
  /** A retry after the last failure needs budget that was not taken yet. */
  #needsBudget = false;
  /** The budget for the next hedge is taken. */
  #isHedgePaid = false;
  /** Retries that were sent, without hedges. */
  retriesMade = 0;
  /** The instance to which the call was bound when it failed and may have arrived, for the first time. */
  #uncertainAt: InstanceRef | undefined;

  constructor(budget: RetryBudget, events: CallEvents, maxRetries: number) {
    this.#budget = budget;
    this.#events = events;
    this.attemptsLeft = maxRetries;
  }

  /** What follows a failure at `bound`, the only instance that may answer. Called before `noteFailure`. */
  decisionAtBound(error: GatewayError, bound: InstanceRef): DecisionAtBound {
    const place = this.#uncertainAt === bound ? 'here' : 'earlier';
    const mayHaveArrived = this.#uncertainAt !== undefined && place;
    return decideAtBound(error, { repeats: this.retriesMade, mayHaveArrived });
  }

  /**
   * A request that certainly did not arrive this time may have arrived with an earlier attempt. `bound`: the only
   * instance that may answer; undefined while others are under way.
   */
  noteFailure(failed: FailedAttempt, error: GatewayError, bound: InstanceRef | undefined): void {
    if (error.delivered === 'unknown') this.#uncertainAt ??= bound;
    const isUncertain = error.delivered === 'no' && this.failure?.delivered === 'unknown';
    this.failure = atInstance(isUncertain ? perhapsDelivered(error) : error, failed.ref.id);
    this.#needsBudget = error.delivered !== 'no';
    this.#last = { failed, error };
  }

  /**
   * Undefined unless the last failure says that the call did not get to another node. When the way there is lost,
   * the call does not go on elsewhere, but waits until the way is open again, as later calls do; emits when that
   * is known. Source: ADR 295.
   */
  untilWayKnown({ alarm }: Pick<DeadlineDeps, 'alarm'>): Observable<void> | undefined {
    const { failed, error } = this.#last ?? {};
    if (this.attemptsLeft <= 0 || failed?.ref.isElsewhere !== true || error?.delivered !== 'no')
      return undefined;
    return new Observable((asker) => alarm(WAY_KNOWN_MS, () => asker.next()));
  }

  /** Called last, with an instance ready, so that a retry that is not made costs no budget. */
  payRetry(): boolean {
    if (this.#needsBudget && !this.#budget.take()) return false;
    this.#needsBudget = false;
    return true;
  }

  /** Reports the retry after the last failure, once. */
  report(): void {
    if (this.#last === undefined) return;
    this.retriesMade += 1;
    this.#report(this.#last.failed, this.#last.error);
  }

  get mayAffordHedge(): boolean {
    return this.#isHedgePaid || this.#budget.hasRoom;
  }

  /** True when the budget for a hedge is taken: before it is sent, or before an instance for it is searched. */
  payHedge(): boolean {
    this.#isHedgePaid ||= this.#budget.take();
    return this.#isHedgePaid;
  }

  hedgeFailed(): void {
    this.#isHedgePaid = false;
  }

  reportHedge(silent: FailedAttempt, error: GatewayError): void {
    this.#isHedgePaid = false;
    this.#report(silent, error);
  }

  #report({ ref, number }: FailedAttempt, { code }: GatewayError): void {
    this.#last = undefined;
    this.attemptsLeft -= 1;
    this.#events.retried(ref, number, code);
  }
}

/** Bounds the retries of uncertain calls of a gateway by its recent traffic: they would overload a failing backend. */
export class RetryBudget {
  readonly #now: () => number;
  readonly #calls = new RecentCount();
  readonly #retries = new RecentCount();

  /** `now` is a monotonic clock in ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  countCall(): void {
    this.#calls.add(this.#now());
  }

  /** True when one more retry is within the bound of `take`. */
  get hasRoom(): boolean {
    const now = this.#now();
    const most = this.#calls.sum(now) * LIMITS.retryBudgetShare + LIMITS.retryBudgetAllowance;
    return this.#retries.sum(now) + 1 <= most;
  }

  /** True, and counted, when one more retry is within 20 % of the last 10 s plus 10. Source: ADR 9. */
  take(): boolean {
    if (!this.hasRoom) return false;
    this.#retries.add(this.#now());
    return true;
  }
}
