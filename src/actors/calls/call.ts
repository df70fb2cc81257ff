// The loop of one round of a call: choose an instance, count and send the call there in one synchronous block, wait, and try the
// next one if domain/calls/retry-rules.ts allows it. Its route says where the call may go on. Source: ADR 40.
//
// After `delivered: 'no'` the call is sent to another instance, at most `maxRetries` times and never to the same one
// twice; one of a session is retried at its instance (`nextAfter`). After `'unknown'` it goes on only
// if it is safe to repeat, within the retry budget; never after the first message. A repeatable call that is silent
// for a third of its time is also sent to a second instance. The call fails with its last failure.

import { type Observable, type Subscriber, Subscription } from 'rxjs';
import { timeoutFor } from '../../balancing/policy.ts';
import { type ExchangeRequest, ownerIdOf, type SourcedEvent, toolOf } from '../../domain/calls/exchange.ts';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { type FailedAttempt, isRepeatable, type TryKind } from '../../domain/calls/retry-rules.ts';
import { backendTimeout, notInView, queueFull } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, atInstance, type GatewayError, moreTelling } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import type { SharedTimer } from '../../domain/time/shared-timer.ts';
import { noInstanceError } from '../fleet/no-instance.ts';
import type { QueueEntry, QueueTarget } from '../fleet/wait-queue.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Attempt } from './attempt.ts';
import { Attempts } from './attempts.ts';
import type { CallEvents } from './call-events.ts';
import type { AttemptPlan, CallDeps, CallOptions, RunningCall, SendStep, Step } from './call-route.ts';
import { Deadline } from './deadline.ts';
import { Tries } from './tries.ts';

/** One round of a call. Its subscriber gets the messages of the backend and one answer, or the error of the last attempt. */
export class Call implements QueueEntry, RunningCall {
  readonly #deps: CallDeps;
  readonly #options: CallOptions;
  readonly #events: CallEvents;
  readonly #subscriber: Subscriber<SourcedEvent>;
  readonly deadline: Deadline;
  readonly tries: Tries;
  #overdue: GatewayError | undefined;
  readonly #attempts: Attempts;
  /** The subscription to an opening or a wait before the next attempt, or to the answer that the route gives in its place. */
  #preparation: Subscription | undefined;
  #isWaiting = false;
  /** The subscription to the route's search for an instance for a hedge, while silent attempts continue. */
  #search: Subscription | undefined;
  /** True once an instance was found to lack the wanted tool. */
  #isToolLacking = false;
  #isLookingUpTool = false;
  /** The tools that the call has had listed again last: they are not asked again, also if no list came. */
  #lookedUp: InstanceRef['tools'];
  endWait: (() => void) | undefined;

  /** `shortCallTimer`: the timer that all short calls share. */
  constructor(
    deps: CallDeps,
    shortCallTimer: SharedTimer,
    options: CallOptions,
    events: CallEvents,
    subscriber: Subscriber<SourcedEvent>,
  ) {
    this.#deps = deps;
    this.#options = options;
    this.#events = events;
    this.#subscriber = subscriber;
    const { request } = events;
    const { policy } = options.group;
    this.tries = new Tries(policy.maxRetries);
    const timeoutMs = timeoutFor(policy, toolOf(request), request.viewTimeoutMs, options.timeoutMs);
    this.deadline = new Deadline(this, deps, shortCallTimer, timeoutMs, request.arrivedAtMs);
    this.#attempts = new Attempts(this, this.deadline, deps, options.group, events, subscriber);
  }

  // --- for the queue and its route -------------------------------------------------------------------------

  get number(): number {
    return this.#events.number;
  }

  get ownerId(): string {
    return ownerIdOf(this.#request);
  }

  mayTake(target: QueueTarget): boolean {
    if (this.#isLookingUpTool) return false;
    const { onlyInstance } = this.#options.route;
    return onlyInstance === undefined
      ? this.#options.group.pool.mayBePicked(target, this.tries.excluded)
      : target === onlyInstance;
  }

  /**
   * Chooses an instance and sends the call in one synchronous block; or looks up the tool, waits, or gives up.
   * Returns true when the call was sent.
   */
  tryNow(): boolean {
    if (this.#subscriber.closed || this.#isLookingUpTool) return false;
    return this.#take(this.#step());
  }

  refuse(): void {
    this.giveUp(this.tries.failure ?? queueFull(this.#options.group.template));
  }

  /**
   * Ends the call with an error. The end of the attempt under way reports it; without one, the call is reported as
   * refused.
   */
  giveUp(error: GatewayError = this.tries.failure ?? this.#noInstance()): void {
    this.#leaveQueue(); // first: the error handler of the caller may advance the queue
    this.#events.refused(error.code, this.#passedMs);
    this.#subscriber.error(error);
  }

  get isAwaitingClient(): boolean {
    return this.#attempts.newest?.isAwaitingClient === true;
  }

  // --- for its attempts and its deadline -------------------------------------------------------------------

  /** Goes on after a failure as `nextAfter` says. All failed calls pass here; silent ones are handled in #abandonSilent. */
  goOn(failed: FailedAttempt<InstanceRef>, plan?: AttemptPlan): void {
    const { ref } = failed;
    const { route, group } = this.#options;
    const own = this.#attempts.areAnswering ? 'answering' : undefined;
    const progress = this.#attempts.newest === undefined ? own : 'others';
    const next = this.tries.decide(failed, progress, route.boundAt);
    // A silent attempt is excluded already. The successor of an instance has the same id.
    if (next === 'reopen' || !group.has(ref)) this.tries.readmit(ref);
    else this.tries.exclude(ref);
    if (next === 'giveUp') {
      this.#attempts.end(undefined); // those beside it: this one ends the call, with the last event
      this.giveUp();
    } else if (next === 'hedge') this.#hedge();
    else this.#retry(ref, next, plan);
  }

  onSilent(): number {
    const now = this.#deps.clock.now();
    const { silentAfterMs } = this.deadline;
    const dueAtMs = (this.#attempts.newest?.sent.atMs ?? now) + silentAfterMs;
    if (now < dueAtMs) return dueAtMs; // the call had waited before it was sent
    this.#hedge();
    const { newest } = this.#attempts;
    if (newest !== undefined) this.#abandonSilent(newest);
    return now + silentAfterMs;
  }

  timedOut(passedMs: number): void {
    const silent = this.#attempts.first?.ref;
    const mayHaveArrived = silent !== undefined || this.tries.failure?.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    const { report } = this.#request;
    if (silent !== undefined && report !== undefined) report.sentTo = silent;
    this.#overdue = silent === undefined ? overdue : atInstance(overdue, silent.id);
    const { group, route } = this.#options;
    const failure = this.#isWaiting ? this.tries.failure : undefined; // more telling than the lack of another instance
    if (silent === undefined && group.isStarting(this.tries.excluded, route.onlyInstance)) this.giveUp();
    else this.giveUp(failure ?? this.#overdue);
  }

  // --- for its subscriber ----------------------------------------------------------------------------------

  end(): void {
    this.deadline.end();
    this.#leaveQueue();
    this.#preparation?.unsubscribe();
    this.#search?.unsubscribe();
    this.#attempts.end(this.#overdue);
    this.#options.route.end?.();
    this.#events.cancelled(this.#passedMs);
  }

  // --- the steps of a call ---------------------------------------------------------------------------------

  /**
   * Asks the route for a step to an instance that may have the tool. It must be sent in the same turn: see Pool.pick. A session
   * offers the instance to which it is bound again and again.
   */
  #step(kind?: TryKind, failed?: AttemptPlan): Step {
    let step = this.#options.route.step(this, kind, failed);
    while (typeof step !== 'string' && step.kind === 'send' && this.#lacksTool(step.ref) === 'yes') {
      const isOfferedAgain = this.tries.excluded?.has(step.ref.id) === true;
      this.#skip(step.ref);
      step = isOfferedAgain ? 'none' : this.#options.route.step(this, kind, failed);
    }
    if (kind === 'move' && step !== 'none') this.tries.noteMove(); // it waits for the move
    return step;
  }

  #skip(ref: InstanceRef): void {
    this.#isToolLacking = true;
    this.tries.exclude(ref);
  }

  /** Sends the call, or first opens what it needs or lists tools; or waits. Returns true when the call was sent. */
  #take(step: Step): boolean {
    this.#isWaiting = false;
    if (typeof step === 'string') {
      this.#joinQueue(step === 'full');
      return false;
    }
    if (step.kind === 'wait') {
      this.#isWaiting = true;
      this.#waitUntil(step.until$);
      return false;
    }
    const { ref } = step;
    if (this.#request.mayBeSent?.() === false) {
      this.#giveUpLost();
      return false;
    }
    if (this.#queueBehindOthers(ref)) return false;
    if (this.#lacksTool(ref) !== 'no') {
      this.#lookUpTool(ref);
      return false;
    }
    if (!this.tries.payRetry(this.#deps.budget)) {
      this.giveUp();
      return false;
    }
    this.#leaveQueue();
    const retried = this.tries.countRetry();
    if (retried !== undefined) this.#events.retried(retried.ref, retried.number, retried.error.code);
    if (this.#subscriber.closed) return false; // the caller left when the retry was reported
    let plan: ReturnType<SendStep['plan']>;
    try {
      plan = step.plan();
    } catch (thrown) {
      this.#preparationFailed(ref, asGatewayError(thrown));
      return false;
    }
    if ('request' in plan) {
      this.#attempts.send(ref, plan);
      return true;
    }
    const waitMs = this.#passedMs;
    const failed = (error: GatewayError): void => this.#preparationFailed(ref, error);
    const done = (answer: FinalEvent | undefined): void => {
      if (answer === undefined) this.tryNow();
      else this.#answer(ref, answer, waitMs);
    };
    this.#waitFor(plan, done, failed);
    return false;
  }

  #waitUntil(until$: Observable<unknown>): void {
    this.#leaveQueue();
    this.#waitFor(until$, () => this.tryNow());
  }

  #waitFor<T>(
    preparation$: Observable<T>,
    done: (value: T) => void,
    failed = (error: GatewayError): void => this.giveUp(moreTelling(this.tries.failure, error)),
  ): void {
    const preparation = new Subscription();
    this.#preparation = preparation; // before subscribing: it may end synchronously
    const error = (thrown: unknown): void => failed(asGatewayError(thrown));
    preparation.add(preparation$.subscribe({ next: done, error }));
  }

  /** Counts a failed opening as a failed attempt, although no request was sent. */
  #preparationFailed(ref: InstanceRef, error: GatewayError): void {
    const number = this.#events.nextAttemptNumber();
    this.goOn({ ref, number, error, isRepeatable: isRepeatable(this.#request, ref) });
  }

  #answer(ref: InstanceRef, event: FinalEvent, waitMs: number): void {
    const ending = { outcome: event.kind, waitMs, durationMs: this.#passedMs - waitMs, error: undefined };
    this.#events.finished(ref, this.#events.sent(), ending, true);
    this.#subscriber.next({ event, instanceId: ref.id, serverId: ref.serverId });
    this.#subscriber.complete();
  }

  /** Whether the instance lacks the wanted tool. `perhaps`: its list does not have the tool, but may be out of date. */
  #lacksTool({ tools }: InstanceRef): 'yes' | 'no' | 'perhaps' {
    const { group, refusesUnknownTools } = this.#options;
    const request = this.#request;
    // The template may have been pinned while the call waited.
    const wanted = refusesUnknownTools ? toolOf(request) : group.approvedTool(request);
    if (wanted === undefined || tools?.lists(wanted, request.view) !== 'no') return 'no';
    return tools.mayRefresh && tools !== this.#lookedUp ? 'perhaps' : 'yes';
  }

  /**
   * Lists the tools of the instance again, since an unknown tool may be a new one. A call in the queue keeps its position
   * meanwhile.
   */
  #lookUpTool(ref: InstanceRef): void {
    const { tools } = ref;
    const lookedUp = tools?.lookUp();
    if (lookedUp === undefined) {
      this.refuse();
      return;
    }
    this.#isLookingUpTool = true;
    this.#lookedUp = tools;
    void lookedUp.then(() => {
      this.#isLookingUpTool = false;
      if (this.#lacksTool(ref) !== 'no') this.#skip(ref); // also while it is full
      this.tryNow();
    });
  }

  /** Asks the route for the retry. Without an instance it waits for the link to the failed one, if there is one. */
  #retry(failedAt: InstanceRef, kind: TryKind, plan: AttemptPlan | undefined): void {
    const step = this.#step(kind, plan);
    const linkKnown$ = step === 'none' ? this.tries.untilLinkKnown(this.#deps.clock) : undefined;
    if (linkKnown$ === undefined) {
      this.#take(step);
      return;
    }
    this.tries.readmit(failedAt);
    this.#waitUntil(linkKnown$);
  }

  /** Ends a silent attempt where the session of the call is bound, if that can move to a better instance. */
  #abandonSilent(silent: Attempt): void {
    const { group, route } = this.#options;
    const { boundAt } = route;
    if (silent.ref !== boundAt) return;
    if (!this.tries.mayAbandon(silent, group.pool.outliers.isSuspended(boundAt))) return;
    const step = this.#step('move');
    if (typeof step === 'string' || step.kind === 'send') return;
    const failed = this.#attempts.abandon(silent);
    this.tries.exclude(silent.ref);
    this.tries.noteFailure(failed, boundAt);
    this.#take(step);
  }

  /** Starts one more attempt beside silent ones, if an instance can take it now, or once the route has opened one. */
  #hedge(): void {
    const silent = this.#attempts.newest;
    if (silent === undefined || this.#attempts.areAnswering || this.#search !== undefined) return;
    if (this.#attempts.areFull || !this.tries.mayHedge(silent, this.#deps.budget)) return;
    this.tries.exclude(silent.ref);
    const step = this.#step('hedge');
    if (typeof step === 'string') return;
    if (step.kind === 'send') this.#hedgeAt(step, silent);
    else if (this.tries.payHedge(this.#deps.budget)) this.#searchHedge(step.until$);
  }

  #hedgeAt(step: SendStep, silent: Attempt): void {
    const { ref } = step;
    if (this.#lacksTool(ref) !== 'no' || !isRepeatable(this.#request, ref)) return;
    if (this.#request.mayBeSent?.() === false) return;
    if (!this.tries.payHedge(this.#deps.budget)) return;
    let plan: ReturnType<SendStep['plan']>;
    try {
      plan = step.plan();
    } catch {
      return; // there is no room for one, and the silent attempts continue
    }
    if (!('request' in plan)) return;
    this.tries.countHedge();
    this.#events.retried(silent.ref, silent.number, this.#attempts.silence(silent).code);
    if (!this.#subscriber.closed) this.#attempts.send(ref, plan);
    else plan.ended?.({ outcome: 'cancelled', waitMs: 0, durationMs: 0, error: undefined });
  }

  /** Waits for an instance for a hedge. If none is found, the silent attempts simply continue. */
  #searchHedge(until$: Observable<unknown>): void {
    const search = new Subscription();
    this.#search = search; // before subscribing: it may end synchronously
    const over = (isFound: boolean): void => {
      this.#search = undefined;
      if (isFound) this.#hedge();
      else this.tries.hedgeFailed();
    };
    search.add(until$.subscribe({ next: () => over(true), error: () => over(false) }));
  }

  /** Waits while a suitable instance is starting, or in the queue while one is only at its capacity; otherwise gives up. */
  #joinQueue(isFull: boolean): void {
    const { group, route } = this.#options;
    const started$ = group.untilStarted(this.ownerId, this.tries.excluded, route.onlyInstance);
    if (started$ !== undefined) this.#waitUntil(started$);
    else if (!isFull) this.giveUp();
    else if (!group.queue.has(this) && !group.queue.join(this, group.maxQueueLength)) this.refuse();
  }

  /** Puts the call into the queue if others wait for this instance; false: it may be sent at once, or the queue is full. */
  #queueBehindOthers(ref: InstanceRef): boolean {
    const { group } = this.#options;
    const { queue } = group;
    if (!queue.isDue(ref) || queue.has(this) || !this.mayTake(ref)) return false;
    return queue.join(this, group.maxQueueLength);
  }

  /** Its view does not have what it names any more. A failure after which it may have been carried out says more. */
  #giveUpLost(): void {
    const { view = this.#options.group.template, method } = this.#request;
    const { failure } = this.tries;
    const mayHaveArrived = failure !== undefined && failure.delivered !== 'no';
    this.giveUp(mayHaveArrived ? failure : notInView(view, method, toolOf(this.#request)));
  }

  #leaveQueue(): void {
    this.#options.group.queue.leave(this);
  }

  #noInstance(): GatewayError {
    if (!this.#deps.isAccepting()) return shuttingDown();
    const { group, route } = this.#options;
    return noInstanceError(group, {
      lacking: this.#isToolLacking ? toolOf(this.#request) : undefined,
      excluded: this.tries.excluded,
      only: route.onlyInstance,
      allowed: this.#request.tools,
    });
  }

  get #request(): ExchangeRequest {
    return this.#events.request;
  }

  get #passedMs(): number {
    return this.#deps.clock.now() - this.deadline.beganAtMs;
  }
}
