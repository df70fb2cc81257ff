// What a call has tried: at which instances, what failed, and how often it may still try. It pays for retries and hedges
// from the budget of the gateway (retry-budget.ts). domain/calls/retry-rules.ts decides whether a call is tried again; its
// route says at which instance (call-route.ts). A search for a binding uses the same counts. Both call
// `hasAlternative` and `slowAfterMs`. Source: ADR 40, ADR 384.

import type { Observable } from 'rxjs';
import {
  type CallHistory,
  type FailedAttempt,
  mayAbandon,
  mayAwaitLink,
  mayHedge,
  nextAfter,
  type TryKind,
} from '../../domain/calls/retry-rules.ts';
import { atInstance, type GatewayError, perhapsDelivered } from '../../domain/errors/errors.ts';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { RetryBudget } from './retry-budget.ts';

/** Time after a failure within which an instance of another node learns whether that node can be reached, in ms. */
const LINK_KNOWN_MS = 10;

/** The tries of one call or search, at the instances of one template. */
export class Tries {
  /** The number of tries that may still be made; never negative. A retry at the same instance counts, too. */
  left: number;
  #excluded: Set<string> | undefined;
  /** The last failure of an attempt of the call, or of the opening before it; undefined while none has failed. */
  failure: GatewayError | undefined;
  /** The last failed attempt, until its retry is counted. */
  #last: FailedAttempt<InstanceRef> | undefined;
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

  /** `excluded`: ids of instances that are not tried at all. */
  constructor(left: number, excluded?: ReadonlySet<string>) {
    this.left = left;
    if (excluded !== undefined) this.#excluded = new Set(excluded);
  }

  // --- how often, and where --------------------------------------------------------------------------------

  /** The ids of instances that failed, were silent or lack the tool; undefined while there are none. */
  get excluded(): ReadonlySet<string> | undefined {
    return this.#excluded;
  }

  count(): void {
    if (this.left > 0) this.left -= 1;
  }

  exclude({ id }: InstanceRef): void {
    this.#excluded ??= new Set();
    this.#excluded.add(id);
  }

  /** Forgets that this instance is excluded: it may be tried again, or has a successor with the same id. */
  readmit({ id }: InstanceRef): void {
    this.#excluded?.delete(id);
  }

  /** True when another instance than this one may be tried. */
  hasAlternative({ id: own }: InstanceRef, { pool }: TemplateGroup): boolean {
    return this.left > 0 && pool.candidates.some(({ id }) => id !== own && this.#excluded?.has(id) !== true);
  }

  /**
   * The time in ms after which an opening at this instance is slow: half of what is left, `leftMs`. Undefined when there is no
   * alternative to waiting for it: only over a network does a healthy backend open at once; a program takes time to start on any
   * instance.
   */
  slowAfterMs(ref: InstanceRef, group: TemplateGroup, leftMs: number): number | undefined {
    if (!isNetworked(ref.definition) || !this.hasAlternative(ref, group)) return undefined;
    return Math.max(0, Math.ceil(leftMs / 2));
  }

  // --- what failed -----------------------------------------------------------------------------------------

  /**
   * What follows a failure, and records the failure if it counts. An error says about its own attempt whether
   * the request arrived; if an earlier attempt may have delivered it, the recorded failure says `unknown`. `boundAt`: see
   * CallRoute.
   */
  decide(
    failed: FailedAttempt<InstanceRef>,
    progress: CallHistory['progress'],
    boundAt: InstanceRef | undefined,
  ): TryKind | 'giveUp' {
    const next = nextAfter(failed, {
      attemptsLeft: this.left,
      retriesMade: this.retriesMade,
      hasReopened: this.#hasReopened,
      hasMoved: this.#hasMoved,
      bound: boundAt && { mayHaveArrived: this.#mayHaveArrived(boundAt) },
      progress,
    });
    if (next === 'reopen') this.#hasReopened = true;
    else this.noteFailure(failed, progress === 'others' ? undefined : boundAt);
    return next;
  }

  /** Records a failure. `boundAt`: see CallRoute; undefined while other attempts are under way. */
  noteFailure(failed: FailedAttempt<InstanceRef>, boundAt: InstanceRef | undefined): void {
    const { ref, error } = failed;
    if (error.delivered === 'unknown') this.#uncertainAt ??= boundAt;
    const isUncertain = error.delivered === 'no' && this.failure?.delivered === 'unknown';
    this.failure = atInstance(isUncertain ? perhapsDelivered(error) : error, ref.id);
    this.#needsBudget = error.delivered !== 'no';
    this.#last = failed;
  }

  /** Notes that the call has made its session move. */
  noteMove(): void {
    this.#hasMoved = true;
  }

  /** The pause after the last failure, if `mayAwaitLink` says so: emits when it is known whether the link is lost. Cold. */
  untilLinkKnown(clock: Clock): Observable<void> | undefined {
    if (this.#last === undefined) return undefined;
    const { ref, error } = this.#last;
    return mayAwaitLink(error, ref.isElsewhere, this.left) ? timer$(clock, LINK_KNOWN_MS) : undefined;
  }

  // --- retries and hedges ----------------------------------------------------------------------------------

  /**
   * Takes the budget for a retry if it costs any; false when the budget is used up. Called only when an instance is
   * ready, so that a retry that is not made costs nothing.
   */
  payRetry(budget: RetryBudget): boolean {
    if (this.#needsBudget && !budget.take()) return false;
    this.#needsBudget = false;
    return true;
  }

  /** Counts the retry after the last failure, and returns that one; undefined, without effect, when it is counted already. */
  countRetry(): FailedAttempt<InstanceRef> | undefined {
    const last = this.#last;
    if (last === undefined) return undefined;
    this.#last = undefined;
    this.retriesMade += 1;
    this.count();
    return last;
  }

  /** True when a hedge may begin beside this silent attempt. */
  mayHedge(silent: Pick<FailedAttempt, 'isRepeatable'>, budget: RetryBudget): boolean {
    return mayHedge(silent, this.left, this.#isHedgePaid || budget.hasRoom);
  }

  /** True when this silent attempt may end so that its session can move: see mayAbandon of the rules. */
  mayAbandon(silent: Pick<FailedAttempt, 'isRepeatable'>, isSuspended: boolean): boolean {
    return mayAbandon(silent, this.#hasMoved, isSuspended);
  }

  /**
   * Takes the budget for a hedge once; false when the budget is used up. Called before a hedge is sent, or before an
   * instance is searched for it.
   */
  payHedge(budget: RetryBudget): boolean {
    this.#isHedgePaid ||= budget.take();
    return this.#isHedgePaid;
  }

  hedgeFailed(): void {
    this.#isHedgePaid = false;
  }

  countHedge(): void {
    this.#isHedgePaid = false;
    this.#last = undefined;
    this.count();
  }

  #mayHaveArrived(boundAt: InstanceRef): 'here' | 'earlier' | false {
    if (this.#uncertainAt === undefined) return false;
    return this.#uncertainAt === boundAt ? 'here' : 'earlier';
  }
}
