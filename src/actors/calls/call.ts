// The loop of one call: choose an instance, count the call, send it, wait, and try the next instance when that is safe. Choosing
// and counting happen in one synchronous block. The route names the instances and how the call travels there (routes.ts), retry.ts
// decides whether it may be repeated; dispatcher.ts has the rules in full.

import { type Observable, type Subscriber, Subscription } from 'rxjs';
import type { SentCall } from '../../balancing/outliers.ts';
import { ANONYMOUS } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import { backendTimeout, queueFull } from '../../domain/error-catalogue.ts';
import {
  asGatewayError,
  atInstance,
  type GatewayError,
  perhapsDelivered,
  shuttingDown,
} from '../../domain/errors.ts';
import type { Answer, ExchangeEvent, FinalEvent, RequestTrace } from '../../domain/exchange.ts';
import type { Fleet } from '../fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Attempted, CallEvents } from './call-events.ts';
import { callVerdictOf, type ExchangeEnding } from './call-reply.ts';
import { Deadline, SLOW_PART } from './deadline.ts';
import { type CallInput, InstanceSearch, mayLackTool } from './instance-search.ts';
import { isRepeatAllowed, isRepeatable, type RetryBudget } from './retry.ts';
import type { AttemptPlan, CallRoute, RouteRetry, RunningCall } from './routes.ts';
import { tracedExchange } from './traced-exchange.ts';
import type { QueuedCall, QueueTarget } from './wait-queue.ts';

export interface CallDeps extends Clock {
  readonly budget: RetryBudget;
  readonly fleet: Pick<Fleet, 'members'>;
  /** False while the gateway closes: nothing new is started. */
  readonly isAccepting: () => boolean;
  /** For calls without a span; undefined while nothing is traced. Default: never. */
  readonly trace?: () => RequestTrace | undefined;
}

interface Attempt extends Attempted {
  readonly ref: InstanceRef;
  readonly plan: AttemptPlan;
  readonly sent: SentCall<InstanceRef>;
  readonly mayRepeat: boolean;
  readonly subscription: Subscription;
  /** Set when the gateway ends the exchange although the call continues. */
  overdue: GatewayError | undefined;
}

type FailedAttempt = Pick<Attempt, 'ref' | 'attempt' | 'mayRepeat'>;

export class Call implements QueuedCall, RunningCall {
  readonly #deps: CallDeps;
  readonly #input: CallInput;
  readonly #events: CallEvents;
  readonly #route: CallRoute;
  readonly #subscriber: Subscriber<Answer>;
  readonly #deadline: Deadline;
  readonly #search: InstanceSearch;
  isPaused = false;
  #retries = 0;
  #isAnswering = false;
  /** The last failure of an attempt, or of the opening before it. */
  #failure: GatewayError | undefined;
  /** Reports the repeat after the last failure, once. */
  #report: (() => void) | undefined;
  /** A repeat after the last failure needs budget that was not taken yet. */
  #needsBudget = false;
  #overdue: GatewayError | undefined;
  #attempt: Attempt | undefined;
  /** The previous attempt, which is silent and continues. */
  #slowAttempt: Attempt | undefined;
  /** The step before an attempt or instead of one: an opening, an answer of the route, a wait. */
  #preparation: Subscription | undefined;
  #isWaiting = false;

  constructor(deps: CallDeps, input: CallInput, events: CallEvents, subscriber: Subscriber<Answer>) {
    this.#deps = deps;
    this.#input = input;
    this.#events = events;
    this.#search = new InstanceSearch(input);
    this.#route = input.route;
    this.#subscriber = subscriber;
    const { timeoutMs, request } = input;
    const onOver = (passedMs: number) => this.#timedOut(passedMs);
    this.#deadline = new Deadline(deps, timeoutMs, onOver, request.arrivedAtMs, () => this.#slow());
  }

  begin(): void {
    this.#route.begin?.(this);
    this.tryNow();
  }

  // --- for the queue and the route ---------------------------------------------------------------------------------

  get ownerId(): string {
    return this.#input.request.caller ?? ANONYMOUS.id;
  }

  waitsFor(target: QueueTarget): boolean {
    return this.#route.waitsFor(target, this.#search.tried);
  }

  refuse(): void {
    this.giveUp(this.#failure ?? queueFull(this.#input.group.template));
  }

  /** Ends the call with an error: reported by the end of the attempt under way, or, without one, as refused. */
  giveUp(error: GatewayError = this.#failure ?? this.#noInstance()): void {
    this.#leaveQueue(); // first: the error handler of the caller may advance the queue
    this.#events.refused(error.code, this.#passedMs);
    this.#subscriber.error(error);
  }

  // -----------------------------------------------------------------------------------------------------------------

  end(): void {
    this.#deadline.end();
    this.#leaveQueue();
    this.#preparation?.unsubscribe();
    this.#slowAttempt?.subscription.unsubscribe();
    this.#attempt?.subscription.unsubscribe();
    this.#route.end?.();
    this.#events.cancelled(this.#passedMs);
  }

  /** Chooses and sends in one block, or looks up the tool, or waits, or gives up. True when it was sent. */
  tryNow(): boolean {
    if (this.#subscriber.closed) return false;
    const waiting$ = this.#route.wait?.();
    this.#isWaiting = waiting$ !== undefined;
    if (waiting$ !== undefined) {
      this.#leaveQueue();
      const refused = (error: GatewayError): void => this.giveUp(this.#failure ?? error);
      this.#waitFor(waiting$, () => this.tryNow(), refused);
      return false;
    }
    const ref = this.#search.next();
    if (ref === undefined) this.#joinQueue();
    else if (mayLackTool(this.#input, ref)) this.#refreshTools(ref);
    else if (!this.#affordsRepeat()) this.giveUp();
    else return this.#prepare(ref);
    return false;
  }

  /** Sends the call to the instance, or first opens what it needs there. False when it was not sent. */
  #prepare(ref: InstanceRef): boolean {
    this.#leaveQueue();
    this.#report?.();
    if (this.#subscriber.closed) return false; // the caller left when the retry was reported
    let plan: AttemptPlan;
    try {
      plan = this.#route.planFor(ref, this.#search.tried);
    } catch (thrown) {
      this.#preparationFailed(ref, asGatewayError(thrown));
      return false;
    }
    const { opening, answer } = plan;
    const waitMs = this.#passedMs;
    const failed = (error: GatewayError): void => this.#preparationFailed(ref, error, plan);
    if (opening !== undefined) this.#waitFor(opening, () => this.tryNow(), failed);
    else if (answer !== undefined) this.#waitFor(answer, (event) => this.#answer(ref, event, waitMs), failed);
    else {
      this.#send(ref, plan);
      return true;
    }
    return false;
  }

  #waitFor<T>(
    preparation$: Observable<T>,
    done: (value: T) => void,
    failed: (error: GatewayError) => void,
  ): void {
    const preparation = new Subscription();
    this.#preparation = preparation; // before subscribing: it may end synchronously
    const error = (thrown: unknown): void => failed(asGatewayError(thrown));
    preparation.add(preparation$.subscribe({ next: done, error }));
  }

  /** Counts as a failed attempt, although nothing was sent. */
  #preparationFailed(ref: InstanceRef, error: GatewayError, plan?: AttemptPlan): void {
    const failed = { ref, attempt: this.#events.unsent(), mayRepeat: false };
    this.#continue(failed, error, plan?.failed?.(error));
  }

  #answer(ref: InstanceRef, event: FinalEvent, waitMs: number): void {
    const { id, serverId } = ref;
    const attempt = { attempt: this.#events.sent(), waitMs };
    const ending = { outcome: event.kind, durationMs: this.#passedMs - waitMs, error: undefined };
    this.#events.finished(ref, attempt, ending, true);
    this.#subscriber.next({ event, instanceId: id, serverId });
    this.#subscriber.complete();
  }

  /** An unknown tool may be a new one: the instance lists its tools again before the caller gets 404. */
  #refreshTools(ref: InstanceRef): void {
    this.#leaveQueue();
    const lookedUp = ref.tools?.lookUp();
    if (lookedUp === undefined) this.refuse();
    void lookedUp?.then(() => {
      this.#search.lookedUp(ref);
      this.tryNow();
    });
  }

  #send(ref: InstanceRef, plan: AttemptPlan): void {
    const { group } = this.#input;
    const { request, upstream } = plan;
    this.#track(ref);
    const sent = group.pool.outliers.sent(ref);
    const attempt: Attempt = {
      attempt: this.#events.sent(),
      waitMs: sent.atMs - this.#deadline.beganAtMs,
      ref,
      plan,
      sent,
      mayRepeat: isRepeatable(request, ref),
      subscription: new Subscription(),
      overdue: undefined,
    };
    const parent = request.tracker?.trace ?? this.#deps.trace?.();
    const exchange$ = tracedExchange(parent, ref, request, attempt.attempt, {
      finished: (ending) => this.#finished(attempt, ending),
      overdue: () => attempt.overdue ?? this.#overdue,
      paused: (isPaused) => {
        this.isPaused = isPaused;
        this.#deadline.setPaused(isPaused);
        if (isPaused) group.queue.advance(ref);
      },
      upstream,
    });
    // Set before subscribing: an attempt that fails synchronously is followed by the next one in there.
    this.#slowAttempt = this.#attempt;
    this.#attempt = attempt;
    attempt.subscription.add(
      exchange$.subscribe({
        next: (event) => this.#pass(attempt, event),
        error: (thrown: unknown) => this.#failed(attempt, asGatewayError(thrown)),
        complete: () => this.#subscriber.complete(),
      }),
    );
  }

  #track(ref: InstanceRef | undefined): void {
    const { tracker } = this.#input.request;
    if (tracker !== undefined) tracker.sentTo = ref;
  }

  #pass(attempt: Attempt, event: ExchangeEvent): void {
    const { ref, sent, plan } = attempt;
    this.#input.group.pool.outliers.noteMessage(sent);
    this.#deadline.noteMessage();
    if (plan.receive?.(event) === false) return;
    if (!this.#isAnswering) {
      this.#isAnswering = true;
      this.#endOther(attempt);
    }
    this.#subscriber.next({ event, instanceId: ref.id, serverId: ref.serverId });
  }

  /** `winner` answers. The other attempt has failed if its silence was the reason for the second one, else it is cancelled. */
  #endOther(winner: Attempt): void {
    const other = this.#other(winner);
    if (other === undefined) return;
    if (other === this.#slowAttempt) {
      other.overdue = atInstance(backendTimeout(this.#silentMs(other)), other.ref.id);
    }
    this.#attempt = winner;
    this.#slowAttempt = undefined;
    other.subscription.unsubscribe();
  }

  #other(attempt: Attempt): Attempt | undefined {
    return attempt === this.#attempt ? this.#slowAttempt : this.#attempt;
  }

  #failed(failed: Attempt, error: GatewayError): void {
    this.#attempt = this.#other(failed);
    this.#slowAttempt = undefined;
    this.#track(this.#attempt?.ref);
    const isOver = this.#isAnswering || this.#attempt !== undefined;
    this.#continue(failed, error, isOver ? undefined : failed.plan.failed?.(error));
  }

  #continue(failed: FailedAttempt, error: GatewayError, again: RouteRetry | undefined): void {
    if (again !== 'reopen') this.#fail(failed, error);
    if (again !== undefined) this.tryNow();
    else if (this.#attempt !== undefined) this.#trySecond();
    else if (this.#mayRetry() && isRepeatAllowed(error.delivered, failed.mayRepeat)) this.tryNow();
    else this.giveUp();
  }

  /** A request that certainly did not arrive this time may have arrived with an earlier attempt. */
  #fail(failed: FailedAttempt, error: GatewayError): void {
    const { ref } = failed;
    const isUncertain = error.delivered === 'no' && this.#failure?.delivered === 'unknown';
    this.#failure = atInstance(isUncertain ? perhapsDelivered(error) : error, ref.id);
    this.#needsBudget = error.delivered !== 'no';
    this.#report = () => this.#reportRetry(failed, error);
    this.#search.exclude(ref);
  }

  /** Called by the deadline after a long silence; returns when to call it again. */
  #slow(): number {
    const now = this.#deps.now();
    const thirdMs = this.#input.timeoutMs / SLOW_PART;
    const dueAtMs = (this.#attempt?.sent.atMs ?? now) + thirdMs;
    if (now < dueAtMs) return dueAtMs; // the call had waited before it was sent
    this.#trySecond();
    if (this.#attempt !== undefined) this.#abandonSilent(this.#attempt);
    return now + thirdMs;
  }

  /** Ends the silent attempt when the route knows a better instance. */
  #abandonSilent(silent: Attempt): void {
    const error = backendTimeout(this.#silentMs(silent));
    if (silent.plan.slow?.(error) !== true) return;
    this.#attempt = undefined;
    this.#track(undefined);
    silent.overdue = atInstance(error, silent.ref.id);
    silent.subscription.unsubscribe();
    this.#continue(silent, error, 'repeat');
  }

  #silentMs({ sent }: Attempt): number {
    return Math.round(this.#deps.now() - sent.atMs);
  }

  /** Starts a second attempt beside a silent one, if another instance can take the call now. */
  #trySecond(): void {
    const { request } = this.#input;
    const silent = this.#attempt;
    if (silent === undefined || this.#slowAttempt !== undefined || !silent.mayRepeat) return;
    if (!this.#mayRetry()) return;
    this.#search.exclude(silent.ref);
    const ref = this.#search.next();
    if (ref === undefined || mayLackTool(this.#input, ref) || !isRepeatable(request, ref)) return;
    if (this.#route.mayBeSecond?.(ref) !== true) return;
    if (!this.#deps.budget.take()) {
      this.#route.end?.();
      return;
    }
    this.#reportRetry(silent, backendTimeout(this.#silentMs(silent)));
    if (!this.#subscriber.closed) this.#send(ref, this.#route.planFor(ref, this.#search.tried));
  }

  #mayRetry(): boolean {
    const { bound } = this.#route;
    return !this.#isAnswering && bound === undefined && this.#retries < this.#input.group.policy.maxRetries;
  }

  /** Called last, with an instance ready, so that a repeat that is not made costs no budget. */
  #affordsRepeat(): boolean {
    if (this.#needsBudget && !this.#deps.budget.take()) return false;
    this.#needsBudget = false;
    return true;
  }

  #reportRetry({ ref, attempt }: FailedAttempt, { code }: GatewayError): void {
    this.#report = undefined;
    this.#retries += 1;
    this.#events.retried(ref, attempt, code);
  }

  /** Joins the queue, or keeps its position there, while a suitable instance is only at capacity; else gives up. */
  #joinQueue(): void {
    const { group } = this.#input;
    const { queue } = group;
    if (!this.#route.isOnlyFull(this.#search.tried)) this.giveUp();
    else if (queue.has(this)) return;
    else if (queue.join(this, group.maxQueueLength)) queue.claim(this);
    else this.refuse();
  }

  #leaveQueue(): void {
    this.#input.group.queue.leave(this);
  }

  #noInstance(): GatewayError {
    if (!this.#deps.isAccepting()) return shuttingDown();
    return this.#search.error(this.#deps.fleet.members(this.#input.group.template));
  }

  get #passedMs(): number {
    return this.#deps.now() - this.#deadline.beganAtMs;
  }

  #finished(attempt: Attempt, ending: ExchangeEnding): void {
    const { group } = this.#input;
    const { ref, sent, plan } = attempt;
    plan.ended?.(ending);
    const isOver = this.#subscriber.closed && attempt !== this.#slowAttempt;
    this.#events.finished(ref, attempt, ending, isOver);
    group.pool.outliers.ended(sent, callVerdictOf(ending));
    group.queue.advance(ref);
  }

  #timedOut(passedMs: number): void {
    // Of two silent instances the error names the first.
    const silent = (this.#slowAttempt ?? this.#attempt)?.ref;
    const mayHaveArrived = silent !== undefined || this.#failure?.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    if (silent !== undefined) this.#track(silent);
    this.#overdue = silent === undefined ? overdue : atInstance(overdue, silent.id);
    const failure = this.#isWaiting ? this.#failure : undefined; // more telling than the lack of another instance
    this.giveUp(failure ?? this.#overdue);
  }
}
