// The loop of one call: choose an instance, count and send the call there in one synchronous block, wait, and try the next one if
// that is safe. The route names the instances (routes.ts), retry.ts decides about repeats; dispatcher.ts has the rules in full.

import { type Observable, type Subscriber, Subscription } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import { backendTimeout, backendUnavailable, queueFull } from '../../domain/error-catalogue.ts';
import {
  asGatewayError,
  atInstance,
  type GatewayError,
  moreTelling,
  perhapsDelivered,
  shuttingDown,
} from '../../domain/errors.ts';
import type { Answer, ExchangeEvent, FinalEvent, RequestTrace } from '../../domain/exchange.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { Attempt, type AttemptCaller, callVerdictOf } from './attempt.ts';
import type { CallEvents, ExchangeEnding } from './call-events.ts';
import { Deadline, type DeadlineDeps, SLOW_PART, type TimedCall } from './deadline.ts';
import { isAboutRequest, isRepeatAllowed, isRepeatable, type RetryBudget } from './retry.ts';
import type { AttemptPlan, CallInput, CallRoute, RouteRetry, RunningCall } from './routes.ts';
import type { QueuedCall, QueueTarget } from './wait-queue.ts';
import { WantedTool } from './wanted-tool.ts';

export interface CallDeps extends DeadlineDeps {
  /** For tasks that come due by the thousand. */
  readonly scheduler: Pick<TaskScheduler, 'run'>;
  readonly budget: RetryBudget;
  /** False while the gateway closes: nothing new is started. */
  readonly isAccepting: () => boolean;
  /** For calls without a span; undefined while nothing is traced. Default: never. */
  readonly trace?: () => RequestTrace | undefined;
}

const NONE = Object.freeze<Attempt[]>([]);
/** Silent attempts of one call beside which one more may start. */
const MOST_SILENT = 2;

type FailedAttempt = Pick<Attempt, 'ref' | 'number' | 'mayRepeat'>;

export class Call implements QueuedCall, RunningCall, AttemptCaller, TimedCall {
  readonly #deps: CallDeps;
  readonly #input: CallInput;
  readonly #events: CallEvents;
  readonly #route: CallRoute;
  readonly #subscriber: Subscriber<Answer>;
  readonly deadline: Deadline;
  /** Instances that are not tried again. */
  #tried: Set<string> | undefined;
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
  /** The attempts before it, which are silent and continue; the oldest is first. */
  #silent: readonly Attempt[] = NONE;
  /** The step before an attempt or instead of one: an opening, an answer of the route, a wait. */
  #preparation: Subscription | undefined;
  #isWaiting = false;
  readonly #tool: WantedTool;
  readonly number: number;
  endWait: (() => void) | undefined;

  /** `number`: increases from call to call of the gateway. */
  constructor(
    deps: CallDeps,
    number: number,
    input: CallInput,
    events: CallEvents,
    subscriber: Subscriber<Answer>,
  ) {
    this.#deps = deps;
    this.number = number;
    this.#input = input;
    this.#tool = new WantedTool(input.wantedTool);
    this.#events = events;
    this.#route = input.route;
    this.#subscriber = subscriber;
    this.deadline = new Deadline(this, deps, input.timeoutMs, input.request.arrivedAtMs);
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
    return !this.#tool.isLookingUp && this.#route.waitsFor(target, this.#tried);
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

  get isPaused(): boolean {
    return this.#attempt?.isPaused === true;
  }

  // --- for its attempts --------------------------------------------------------------------------------------------

  now(): number {
    return this.#deps.now();
  }

  run(task: () => void): void {
    this.#deps.scheduler.run(task);
  }

  passed(attempt: Attempt, event: ExchangeEvent): void {
    const { ref, sent, plan } = attempt;
    this.#input.group.pool.outliers.noteMessage(sent);
    this.deadline.noteMessage();
    if (plan.receive?.(event) === false) return;
    if (!this.#isAnswering) {
      this.#isAnswering = true;
      this.#endOthers(attempt);
    }
    this.#subscriber.next({ event, instanceId: ref.id, serverId: ref.serverId });
  }

  failed(attempt: Attempt, error: GatewayError): void {
    const others = this.#others(attempt);
    this.#attempt = others.at(-1);
    this.#silent = others.slice(0, -1);
    this.#track(this.#attempt?.ref);
    const isOver = this.#isAnswering || this.#attempt !== undefined;
    this.#continue(attempt, error, isOver ? undefined : attempt.plan.failed?.(error));
  }

  completed(): void {
    this.#subscriber.complete();
  }

  paused({ ref }: Attempt, isPaused: boolean): void {
    this.deadline.setPaused(isPaused);
    if (isPaused) this.#input.group.queue.advance(ref);
  }

  ended(attempt: Attempt, ending: ExchangeEnding): void {
    const { group } = this.#input;
    const { ref, sent, plan } = attempt;
    plan.ended?.(ending);
    const isOver = this.#subscriber.closed && !this.#silent.includes(attempt);
    this.#events.finished(attempt, ending, isOver);
    group.pool.outliers.ended(sent, callVerdictOf(ending));
    group.queue.advance(ref);
  }

  // --- for its deadline --------------------------------------------------------------------------------------------

  slow(): number {
    const now = this.#deps.now();
    const thirdMs = this.#input.timeoutMs / SLOW_PART;
    const dueAtMs = (this.#attempt?.sent.atMs ?? now) + thirdMs;
    if (now < dueAtMs) return dueAtMs; // the call had waited before it was sent
    this.trySecond();
    if (this.#attempt !== undefined) this.#abandonSilent(this.#attempt);
    return now + thirdMs;
  }

  timedOut(passedMs: number): void {
    // Of several silent instances the error names the first.
    const silent = (this.#silent[0] ?? this.#attempt)?.ref;
    const mayHaveArrived = silent !== undefined || this.#failure?.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    if (silent !== undefined) this.#track(silent);
    this.#overdue = silent === undefined ? overdue : atInstance(overdue, silent.id);
    const { group, route } = this.#input;
    const failure = this.#isWaiting ? this.#failure : undefined; // more telling than the lack of another instance
    if (silent === undefined && group.isStarting(this.#tried, route.bound)) this.giveUp();
    else this.giveUp(failure ?? this.#overdue);
  }

  end(): void {
    this.deadline.end();
    this.#leaveQueue();
    this.#preparation?.unsubscribe();
    for (const silent of this.#silent) silent.end(this.#overdue);
    this.#attempt?.end(this.#overdue);
    this.#route.end?.();
    this.#events.cancelled(this.#passedMs);
  }

  /** Chooses and sends in one block, or looks up the tool, or waits, or gives up. True when it was sent. */
  tryNow(): boolean {
    if (this.#subscriber.closed || this.#tool.isLookingUp) return false;
    const waiting$ = this.#route.wait?.();
    this.#isWaiting = waiting$ !== undefined;
    if (waiting$ !== undefined) {
      this.#leaveQueue();
      this.#waitFor(waiting$, () => this.tryNow());
      return false;
    }
    const ref = this.#next();
    if (ref === undefined) this.#joinQueue();
    else if (this.#queueBehindOthers(ref)) return false;
    else if (this.#tool.mayBeAbsent(ref)) this.#lookUpTool(ref);
    else if (!this.#affordsRepeat()) this.giveUp();
    else return this.#prepare(ref);
    return false;
  }

  /** Undefined when no instance can take the call now. The call is to be sent in the same synchronous block: see Pool.pick. */
  #next(): InstanceRef | undefined {
    let ref = this.#route.next(this.#tried);
    while (ref !== undefined && this.#tool.isAbsent(ref)) {
      this.#skip(ref);
      ref = this.#route.next(this.#tried);
    }
    return ref;
  }

  #skip(ref: InstanceRef): void {
    this.#tool.isLacking = true;
    this.#exclude(ref);
  }

  #exclude(ref: InstanceRef): void {
    this.#tried ??= new Set();
    this.#tried.add(ref.id);
  }

  /** Sends the call to the instance, or first opens what it needs there. False when it was not sent. */
  #prepare(ref: InstanceRef): boolean {
    this.#leaveQueue();
    this.#report?.();
    if (this.#subscriber.closed) return false; // the caller left when the retry was reported
    let plan: AttemptPlan;
    try {
      plan = this.#route.planFor(ref, this.#tried);
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
    failed = (error: GatewayError): void => this.giveUp(moreTelling(this.#failure, error)),
  ): void {
    const preparation = new Subscription();
    this.#preparation = preparation; // before subscribing: it may end synchronously
    const error = (thrown: unknown): void => failed(asGatewayError(thrown));
    preparation.add(preparation$.subscribe({ next: done, error }));
  }

  /** Counts as a failed attempt, although nothing was sent. */
  #preparationFailed(ref: InstanceRef, error: GatewayError, plan?: AttemptPlan): void {
    const failed = { ref, number: this.#events.unsent(), mayRepeat: false };
    this.#continue(failed, error, plan?.failed?.(error));
  }

  #answer(ref: InstanceRef, event: FinalEvent, waitMs: number): void {
    const { id, serverId } = ref;
    const ending = { outcome: event.kind, durationMs: this.#passedMs - waitMs, error: undefined };
    this.#events.finished({ ref, number: this.#events.sent(), waitMs }, ending, true);
    this.#subscriber.next({ event, instanceId: id, serverId });
    this.#subscriber.complete();
  }

  /** A call in the queue keeps its position meanwhile. */
  #lookUpTool(ref: InstanceRef): void {
    const isLookingUp = this.#tool.lookUp(ref, () => {
      if (this.#tool.mayBeAbsent(ref)) this.#skip(ref); // it is not asked again
      this.tryNow();
    });
    if (!isLookingUp) this.refuse();
  }

  #send(ref: InstanceRef, plan: AttemptPlan): void {
    this.#track(ref);
    const sent = this.#input.group.pool.outliers.sent(ref);
    const trace = plan.request.tracker?.trace ?? this.#deps.trace?.();
    const attempt = new Attempt(this, ref, plan, sent, this.#events.sent(), trace);
    // Set before it starts: an attempt that fails synchronously is followed by the next one in there.
    if (this.#attempt !== undefined) this.#silent = [...this.#silent, this.#attempt];
    this.#attempt = attempt;
    attempt.start();
  }

  #track(ref: InstanceRef | undefined): void {
    const { tracker } = this.#input.request;
    if (tracker !== undefined) tracker.sentTo = ref;
  }

  /** `winner` answers. Another attempt has failed if its silence was the reason for a later one, else it is cancelled. */
  #endOthers(winner: Attempt): void {
    if (this.#silent.length === 0) return;
    const newest = this.#attempt;
    const others = this.#others(winner);
    this.#attempt = winner;
    this.#silent = NONE;
    for (const other of others)
      other.end(other === newest ? undefined : atInstance(this.#silence(other), other.ref.id));
  }

  #others(attempt: Attempt): readonly Attempt[] {
    if (this.#attempt === undefined || this.#silent.length === 0) return NONE;
    return [...this.#silent, this.#attempt].filter((each) => each !== attempt);
  }

  #continue(failed: FailedAttempt, error: GatewayError, again: RouteRetry | undefined): void {
    if (again !== 'reopen') this.#fail(failed, error);
    if (again !== undefined) this.tryNow();
    else if (failed instanceof Attempt && isAboutRequest(error)) this.giveUp();
    else if (this.#attempt !== undefined) this.trySecond();
    else if (this.#route.bound !== undefined || !this.#mayRetry()) this.giveUp();
    else if (isRepeatAllowed(error.delivered, failed.mayRepeat)) this.tryNow();
    else this.giveUp();
  }

  /** A request that certainly did not arrive this time may have arrived with an earlier attempt. */
  #fail(failed: FailedAttempt, error: GatewayError): void {
    const { ref } = failed;
    const isUncertain = error.delivered === 'no' && this.#failure?.delivered === 'unknown';
    this.#failure = atInstance(isUncertain ? perhapsDelivered(error) : error, ref.id);
    this.#needsBudget = error.delivered !== 'no';
    this.#report = () => this.#reportRetry(failed, error);
    this.#exclude(ref);
  }

  /** Ends the silent attempt when the route knows a better instance. */
  #abandonSilent(silent: Attempt): void {
    const error = this.#silence(silent);
    if (silent.plan.slow?.(error) !== true) return;
    this.#attempt = undefined;
    this.#track(undefined);
    silent.end(atInstance(error, silent.ref.id));
    this.#continue(silent, error, 'repeat');
  }

  #silence({ sent }: Attempt): GatewayError {
    return backendTimeout(Math.round(this.#deps.now() - sent.atMs));
  }

  /** Starts one more attempt beside silent ones, if another instance can take the call now. */
  trySecond(): void {
    const { request } = this.#input;
    const silent = this.#attempt;
    if (silent === undefined || this.#silent.length >= MOST_SILENT || !silent.mayRepeat) return;
    const { bound, second } = this.#route;
    if (!this.#mayRetry() || (bound !== undefined && second === undefined)) return;
    this.#exclude(silent.ref);
    const ref = second === undefined ? this.#next() : second.call(this.#route, this.#tried);
    if (ref === undefined || this.#tool.mayBeAbsent(ref) || !isRepeatable(request, ref)) return;
    if (second === undefined && !this.#affordsSecond(ref)) return;
    this.#reportRetry(silent, this.#silence(silent));
    if (!this.#subscriber.closed) this.#send(ref, this.#route.planFor(ref, this.#tried));
  }

  #affordsSecond(ref: InstanceRef): boolean {
    if (this.#route.mayBeSecond?.(ref) !== true) return false;
    if (this.#deps.budget.take()) return true;
    this.#route.end?.();
    return false;
  }

  #mayRetry(): boolean {
    return !this.#isAnswering && this.#retries < this.#input.group.policy.maxRetries;
  }

  /** Called last, with an instance ready, so that a repeat that is not made costs no budget. */
  #affordsRepeat(): boolean {
    if (this.#needsBudget && !this.#deps.budget.take()) return false;
    this.#needsBudget = false;
    return true;
  }

  #reportRetry({ ref, number }: FailedAttempt, { code }: GatewayError): void {
    this.#report = undefined;
    this.#retries += 1;
    this.#events.retried(ref, number, code);
  }

  /** Waits while a suitable instance is starting, or in the queue while one is only at capacity; else gives up. */
  #joinQueue(): void {
    const { group, route } = this.#input;
    const { queue } = group;
    const started$ = group.untilStarted(this.ownerId, this.#tried, route.bound);
    if (started$ !== undefined) {
      this.#leaveQueue();
      this.#waitFor(started$, () => this.tryNow());
    } else if (!route.isOnlyFull(this.#tried)) this.giveUp();
    else if (!queue.has(this) && !queue.join(this, group.maxQueueLength)) this.refuse();
  }

  /** The room at that instance is for the calls that wait already: the call joins them, unless their queue is full. */
  #queueBehindOthers(ref: InstanceRef): boolean {
    const { group } = this.#input;
    const { queue } = group;
    if (!queue.isDue(ref) || queue.has(this) || !this.waitsFor(ref)) return false;
    return queue.join(this, group.maxQueueLength);
  }

  #leaveQueue(): void {
    this.#input.group.queue.leave(this);
  }

  /** TOOL_NOT_FOUND unless an unavailable instance may have the tool. */
  #noInstance(): GatewayError {
    if (!this.#deps.isAccepting()) return shuttingDown();
    const { group } = this.#input;
    const { name } = this.#tool;
    const { bound } = this.#route;
    const isLacking = name !== undefined && this.#tool.isLacking;
    const unknown = isLacking ? group.unknownTool(name, this.#tried, bound !== undefined) : undefined;
    if (unknown !== undefined) return unknown;
    if (bound === undefined) return group.noneHealthy();
    return backendUnavailable(`"${bound.id}" is ${bound.state}`, { delivered: 'no' });
  }

  get #passedMs(): number {
    return this.now() - this.deadline.beganAtMs;
  }
}
