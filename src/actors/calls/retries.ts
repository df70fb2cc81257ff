// The retries of one call, for which it pays from the budget of the gateway (retry-budget.ts). domain/calls/retry-rules.ts
// decides whether a call is retried; its route says at which instance (call-route.ts). Source: ADR 9, ADR 384.

import type { Observable } from 'rxjs';
import {
  type AfterFailure,
  type CallFailure,
  mayAbandon,
  mayAwaitLink,
  mayHedge,
  nextAfter,
} from '../../domain/calls/retry-rules.ts';
import { atInstance, type GatewayError, perhapsDelivered } from '../../domain/errors/errors.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { CallEvents, NumberedAttempt } from './call-events.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { Tries } from './tries.ts';

/** Time after a failure within which an instance of another node learns whether that node can be reached, in ms. */
const LINK_KNOWN_MS = 10;

/** Counts the failures, retries and hedges of one call, and pays for them from the retry budget. */
export class Retries {
  readonly #budget: RetryBudget;
  readonly #events: CallEvents;
  readonly #tries: Tries;
  /** The last failure of an attempt, or of the opening before it; undefined while none has failed. */
  failure: GatewayError | undefined;
  /** The last failed attempt and its error, until its retry is reported. */
  #last: { readonly failed: NumberedAttempt; readonly error: GatewayError } | undefined;
  /** True when a retry after the last failure costs budget that is not taken yet. */
  #needsBudget = false;
  /** True when the budget for the next hedge is taken. */
  #isHedgePaid = false;
  /** The number of retries that were sent, without hedges. */
  retriesMade = 0;
  #hasReopened = false;
  #hasMoved = false;
  /** The first instance of its session at which an attempt failed after its request had perhaps arrived. */
  #uncertainAt: InstanceRef | undefined;

  /** `tries`: those of the call; each retry and each hedge counts there. */
  constructor(budget: RetryBudget, events: CallEvents, tries: Tries) {
    this.#budget = budget;
    this.#events = events;
    this.#tries = tries;
  }

  /**
   * What follows a failure, and records the failure if it counts. An error says about its own attempt whether
   * the request arrived; if an earlier attempt may have delivered it, the recorded failure says `unknown`. `boundAt`: see
   * CallRoute.
   */
  decide(at: NumberedAttempt, failed: CallFailure, boundAt: InstanceRef | undefined): AfterFailure {
    const { error, progress } = failed;
    const next = nextAfter(failed, {
      attemptsLeft: this.#tries.left,
      retriesMade: this.retriesMade,
      hasReopened: this.#hasReopened,
      hasMoved: this.#hasMoved,
      bound: boundAt && { mayHaveArrived: this.#mayHaveArrived(boundAt) },
    });
    if (next === 'reopen') this.#hasReopened = true;
    else this.noteFailure(at, error, progress === 'others' ? undefined : boundAt);
    return next;
  }

  /** Notes that the call has made its session move. */
  noteMove(): void {
    this.#hasMoved = true;
  }

  /** Records a failure. `boundAt`: see CallRoute; undefined while other attempts are under way. */
  noteFailure(failed: NumberedAttempt, error: GatewayError, boundAt: InstanceRef | undefined): void {
    if (error.delivered === 'unknown') this.#uncertainAt ??= boundAt;
    const isUncertain = error.delivered === 'no' && this.failure?.delivered === 'unknown';
    this.failure = atInstance(isUncertain ? perhapsDelivered(error) : error, failed.ref.id);
    this.#needsBudget = error.delivered !== 'no';
    this.#last = { failed, error };
  }

  /** The pause after the last failure, if `mayAwaitLink` says so: emits when it is known whether the link is lost. Cold. */
  untilLinkKnown(clock: Clock): Observable<void> | undefined {
    if (this.#last === undefined) return undefined;
    const { failed, error } = this.#last;
    const isPaused = mayAwaitLink(error, failed.ref.isElsewhere, this.#tries.left);
    return isPaused ? timer$(clock, LINK_KNOWN_MS) : undefined;
  }

  /**
   * Takes the budget for a retry if it costs any; false when the budget is used up. Called only when an instance is
   * ready, so that a retry that is not made costs nothing.
   */
  payRetry(): boolean {
    if (this.#needsBudget && !this.#budget.take()) return false;
    this.#needsBudget = false;
    return true;
  }

  /** Counts and reports the retry after the last failure; without effect when it is reported already. */
  report(): void {
    if (this.#last === undefined) return;
    this.retriesMade += 1;
    this.#report(this.#last.failed, this.#last.error);
  }

  /** True when a hedge may begin beside this silent attempt. */
  mayHedge(silent: Pick<CallFailure, 'isRepeatable'>): boolean {
    return mayHedge(silent, this.#tries.left, this.#isHedgePaid || this.#budget.hasRoom);
  }

  /** True when this silent attempt may end so that its session can move: see mayAbandon of the rules. */
  mayAbandon(silent: Pick<CallFailure, 'isRepeatable'>, isSuspended: boolean): boolean {
    return mayAbandon(silent, this.#hasMoved, isSuspended);
  }

  /**
   * Takes the budget for a hedge once; false when the budget is used up. Called before a hedge is sent, or before an
   * instance is searched for it.
   */
  payHedge(): boolean {
    this.#isHedgePaid ||= this.#budget.take();
    return this.#isHedgePaid;
  }

  hedgeFailed(): void {
    this.#isHedgePaid = false;
  }

  reportHedge(silent: NumberedAttempt, error: GatewayError): void {
    this.#isHedgePaid = false;
    this.#report(silent, error);
  }

  #mayHaveArrived(boundAt: InstanceRef): 'here' | 'earlier' | false {
    if (this.#uncertainAt === undefined) return false;
    return this.#uncertainAt === boundAt ? 'here' : 'earlier';
  }

  #report(failed: NumberedAttempt, { code }: GatewayError): void {
    this.#last = undefined;
    this.#tries.count();
    this.#events.retried(failed, code);
  }
}
