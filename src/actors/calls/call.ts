// One call on its way: choose, count, send, wait, and on to the next instance when that is safe. Choosing and counting
// happen in one synchronous block. A call that may be repeated and stays silent is sent to a second instance, too: the first
// answer wins. Its route says which instances may take it and how it travels there (routes.ts), retry.ts whether it may be
// made again; the rules in full are in dispatcher.ts.

import { type Observable, type Subscriber, Subscription } from 'rxjs';
import type { Sent } from '../../balancing/outliers.ts';
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
import type { Answer, ExchangeEvent, ExchangeRequest, FinalEvent } from '../../domain/exchange.ts';
import type { Fleet } from '../fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Attempted, CallEvents } from './call-events.ts';
import { callEndOf, type ExchangeEnding } from './call-reply.ts';
import { Deadline, SLOW_PART } from './deadline.ts';
import { type CallOrder, InstanceSearch, mayLackTool } from './instance-search.ts';
import { affords, isRepeatable, mayGoOn, type RetryBudget } from './retry.ts';
import type { CallRoute, GoesOn, Passage } from './routes.ts';
import { type TraceDeps, tracedExchange } from './traced-exchange.ts';
import type { QueuedCall, QueuedPlace } from './wait-queue.ts';

export interface CallDeps extends Clock, TraceDeps {
  readonly budget: RetryBudget;
  readonly fleet: Pick<Fleet, 'members'>;
  /** False while the gateway closes: nothing new is started. */
  readonly isAccepting: () => boolean;
}

/** The call at one instance. */
interface Attempt extends Attempted {
  readonly ref: InstanceRef;
  readonly passage: Passage;
  readonly sent: Sent<InstanceRef>;
  readonly mayRepeat: boolean;
  readonly subscription: Subscription;
  /** Set when the gateway ends the exchange although the call goes on. */
  overdue: GatewayError | undefined;
}

type FailedAttempt = Pick<Attempt, 'ref' | 'attempt' | 'mayRepeat'>;

/** Of an attempt, or of an opening before one. */
interface Failure {
  readonly ref: InstanceRef;
  readonly error: GatewayError;
  readonly attempt: number;
  /** The budget was asked for a repeat after it. */
  isPaid: boolean;
  /** An event reported a repeat after it. */
  isTold: boolean;
}

/** A call, from the first choice of an instance to its one end. */
export class Call implements QueuedCall {
  readonly #deps: CallDeps;
  readonly #order: CallOrder;
  readonly #events: CallEvents;
  readonly #route: CallRoute;
  readonly #subscriber: Subscriber<Answer>;
  readonly #deadline: Deadline;
  readonly #search: InstanceSearch;
  #retries = 0;
  #isAnswering = false;
  /** The last instance it was sent to. */
  #asked: InstanceRef | undefined;
  #lastFailure: Failure | undefined;
  #overdue: GatewayError | undefined;
  #attempt: Attempt | undefined;
  /** The attempt before it, which is silent and goes on. */
  #slowAttempt: Attempt | undefined;
  #isQueued = false;
  /** What comes before an attempt, and its instance: an opening, an answer without an attempt, a wait of the route. */
  #before: Subscription | undefined;
  #beforeAt: InstanceRef | undefined;
  /** The route waits. */
  #isWaiting = false;

  constructor(deps: CallDeps, order: CallOrder, events: CallEvents, subscriber: Subscriber<Answer>) {
    this.#deps = deps;
    this.#order = order;
    this.#events = events;
    this.#search = new InstanceSearch(order);
    this.#route = order.route;
    this.#subscriber = subscriber;
    const { timeoutMs, request } = order;
    const onOver = (passedMs: number) => this.#late(passedMs);
    this.#deadline = new Deadline(deps, timeoutMs, onOver, request.cameAtMs, () => this.#slow());
  }

  begin(): void {
    this.#route.begin?.((error) => this.#giveUp(error));
    this.#try();
  }

  // --- for the queue -----------------------------------------------------------------------------------------------

  get ownerId(): string {
    return this.#order.request.caller ?? ANONYMOUS.id;
  }

  waitsFor(place: QueuedPlace): boolean {
    return this.#route.waitsFor(place, this.#search.tried);
  }

  go(): boolean {
    return this.#try();
  }

  giveUp(): void {
    this.#giveUp(this.#failure() ?? queueFull(this.#order.group.template));
  }

  // -----------------------------------------------------------------------------------------------------------------

  end(): void {
    this.#deadline.end();
    this.#leaveQueue();
    this.#before?.unsubscribe();
    this.#slowAttempt?.subscription.unsubscribe();
    this.#attempt?.subscription.unsubscribe();
    this.#route.end();
    this.#events.cancelled(this.#passedMs);
  }

  /** Chooses and sends in one block, or looks up the tool, or waits, or gives up. True when it was sent. */
  #try(): boolean {
    if (this.#subscriber.closed) return false;
    const waiting$ = this.#route.wait?.();
    this.#isWaiting = waiting$ !== undefined;
    if (waiting$ !== undefined) {
      this.#leaveQueue();
      const refused = (error: GatewayError): void => this.#giveUp(this.#failure() ?? error);
      this.#waitFor(waiting$, undefined, () => this.#try(), refused);
      return false;
    }
    const ref = this.#search.next();
    if (ref === undefined) this.#joinQueue();
    else if (mayLackTool(this.#order, ref)) this.#lookAgain(ref);
    else if (!this.#affordsToGoOn()) this.#giveUp();
    else return this.#takeTo(ref);
    return false;
  }

  /** Sends the call there, or opens what it needs before. False when it was not sent. */
  #takeTo(ref: InstanceRef): boolean {
    this.#leaveQueue();
    const failure = this.#lastFailure;
    if (failure?.isTold === false) this.#tellRetry(failure, failure.error);
    if (this.#subscriber.closed) return false; // its caller left on hearing of the retry
    let passage: Passage;
    try {
      passage = this.#route.passageTo(ref, this.#search.tried);
    } catch (thrown) {
      this.#unopened(ref, asGatewayError(thrown));
      return false;
    }
    const { opening, answer } = passage;
    const waitMs = this.#passedMs;
    const failed = (error: GatewayError): void => this.#unopened(ref, error, passage);
    if (opening !== undefined) this.#waitFor(opening, ref, () => this.#try(), failed);
    else if (answer !== undefined)
      this.#waitFor(answer, ref, (event) => this.#answer(ref, event, waitMs), failed);
    else {
      this.#send(ref, passage);
      return true;
    }
    return false;
  }

  #waitFor<T>(
    before$: Observable<T>,
    ref: InstanceRef | undefined,
    done: (value: T) => void,
    failed: (error: GatewayError) => void,
  ): void {
    const before = new Subscription();
    this.#before = before; // before subscribing: it may be done, or fail, in there
    this.#beforeAt = ref;
    before.add(
      before$.subscribe({
        next: (value) => {
          this.#beforeAt = undefined;
          done(value);
        },
        error: (thrown: unknown) => {
          this.#beforeAt = undefined;
          failed(asGatewayError(thrown));
        },
      }),
    );
  }

  /** Counts as a failed attempt, although nothing was sent. */
  #unopened(ref: InstanceRef, error: GatewayError, passage?: Passage): void {
    const failed = { ref, attempt: this.#events.unsent(), mayRepeat: false };
    this.#goOn(failed, error, passage?.failed?.(error));
  }

  #answer(ref: InstanceRef, event: FinalEvent, waitMs: number): void {
    const { id, serverId } = ref;
    const attempt = { attempt: this.#events.sent(), waitMs };
    const ending = { outcome: event.kind, durationMs: this.#passedMs - waitMs, error: undefined };
    this.#events.finished(ref, attempt, ending, true);
    this.#subscriber.next({ event, instanceId: id, serverId });
    this.#subscriber.complete();
  }

  /** An unknown tool may be a new one: the list is looked up once more before the caller gets 404. */
  #lookAgain(ref: InstanceRef): void {
    this.#leaveQueue();
    const lookedUp = ref.tools?.lookUp();
    if (lookedUp === undefined) this.giveUp();
    void lookedUp?.then(() => {
      this.#search.lookedUp(ref);
      this.#try();
    });
  }

  #send(ref: InstanceRef, passage: Passage): void {
    this.#asked = ref;
    const { group } = this.#order;
    const { request, upstream } = passage;
    this.#track(ref);
    const sent = group.pool.sent(ref);
    const attempt: Attempt = {
      attempt: this.#events.sent(),
      waitMs: sent.atMs - this.#deadline.beganAtMs,
      ref,
      passage,
      sent,
      mayRepeat: isRepeatable(request, ref),
      subscription: new Subscription(),
      overdue: undefined,
    };
    const exchange$ = tracedExchange(this.#deps, ref, asSent(request), attempt.attempt, {
      finished: (ending) => this.#finished(attempt, ending),
      overdue: () => attempt.overdue ?? this.#overdue,
      paused: () => this.#order.group.queue.advance(ref),
      upstream,
    });
    // Set before subscribing: an attempt that fails at once is followed by the next one in there.
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
    const { tracker } = this.#order.request;
    if (tracker !== undefined) tracker.sentTo = ref;
  }

  #pass(attempt: Attempt, event: ExchangeEvent): void {
    const { ref, sent, passage } = attempt;
    this.#order.group.pool.noteMessage(sent);
    this.#deadline.noteMessage();
    if (passage.receive?.(event) === false) return;
    if (!this.#isAnswering) {
      this.#isAnswering = true;
      this.#endOther(attempt);
    }
    const passed = event.kind === 'request' ? this.#deadline.standStillFor(event) : event;
    this.#subscriber.next({ event: passed, instanceId: ref.id, serverId: ref.serverId });
  }

  /** The answer comes from `winner`. One that was silent for long enough to be given up has failed, any other is cancelled. */
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
    this.#goOn(failed, error, isOver ? undefined : failed.passage.failed?.(error));
  }

  /** After a failure. `again`: the decision of the route. */
  #goOn(failed: FailedAttempt, error: GatewayError, again: GoesOn | undefined): void {
    if (again !== 'reopen') this.#fail(failed, error);
    if (again !== undefined) this.#try();
    else if (this.#attempt !== undefined) this.#trySecond();
    else if (this.#mayGoOn(error, failed.mayRepeat)) this.#try();
    else this.#giveUp();
  }

  /** A request that certainly did not arrive the last time may have arrived before. */
  #fail({ ref, attempt }: FailedAttempt, error: GatewayError): void {
    const isUncertain = error.delivered === 'no' && this.#lastFailure?.error.delivered === 'unknown';
    this.#lastFailure = {
      ref,
      error: isUncertain ? perhapsDelivered(error) : error,
      attempt,
      isPaid: error.delivered === 'no',
      isTold: false,
    };
    this.#search.exclude(ref);
  }

  /** Called by the deadline after a long silence; returns when to call again. */
  #slow(): number {
    const now = this.#deps.now();
    const thirdMs = this.#order.timeoutMs / SLOW_PART;
    const dueAtMs = (this.#attempt?.sent.atMs ?? now) + thirdMs;
    if (now < dueAtMs) return dueAtMs; // it waited before it was sent
    this.#trySecond();
    if (this.#attempt !== undefined) this.#leaveSilent(this.#attempt);
    return now + thirdMs;
  }

  /** Where its route knows a better instance. */
  #leaveSilent(silent: Attempt): void {
    const error = backendTimeout(this.#silentMs(silent));
    if (silent.passage.slow?.(error) !== true) return;
    this.#attempt = undefined;
    this.#track(undefined);
    silent.overdue = atInstance(error, silent.ref.id);
    silent.subscription.unsubscribe();
    this.#goOn(silent, error, 'repeat');
  }

  #silentMs({ sent }: Attempt): number {
    return Math.round(this.#deps.now() - sent.atMs);
  }

  /** The silent attempt goes on beside it; nothing happens when no other instance can take the call now. */
  #trySecond(): void {
    const { request } = this.#order;
    const silent = this.#attempt;
    if (silent === undefined || this.#slowAttempt !== undefined || !silent.mayRepeat) return;
    if (!this.#mayRetry()) return;
    this.#search.exclude(silent.ref);
    const ref = this.#search.next();
    if (ref === undefined || mayLackTool(this.#order, ref) || !isRepeatable(request, ref)) return;
    if (!this.#route.mayBeSecond(ref)) return;
    if (!this.#deps.budget.take()) {
      this.#route.end();
      return;
    }
    this.#tellRetry(silent, backendTimeout(this.#silentMs(silent)));
    if (!this.#subscriber.closed) this.#send(ref, this.#route.passageTo(ref, this.#search.tried));
  }

  #mayGoOn({ delivered }: GatewayError, mayRepeat: boolean): boolean {
    return this.#mayRetry() && mayGoOn(delivered, mayRepeat);
  }

  #mayRetry(): boolean {
    const { bound } = this.#route;
    return !this.#isAnswering && bound === undefined && this.#retries < this.#order.group.policy.maxRetries;
  }

  #affordsToGoOn(): boolean {
    const failure = this.#lastFailure;
    if (failure === undefined || failure.isPaid) return true;
    failure.isPaid = affords(this.#deps.budget, failure.error.delivered);
    return failure.isPaid;
  }

  #tellRetry({ ref, attempt }: Pick<Attempt, 'ref' | 'attempt'>, { code }: GatewayError): void {
    if (this.#lastFailure !== undefined) this.#lastFailure.isTold = true;
    this.#retries += 1;
    this.#events.retried(ref, attempt, code);
  }

  /** Joins the queue, or keeps its turn there, while an instance that may serve it is only full. */
  #joinQueue(): void {
    const { group } = this.#order;
    const isWorthIt = this.#route.isOnlyFull(this.#search.tried);
    if (!isWorthIt) this.#giveUp();
    if (!isWorthIt || this.#isQueued) return;
    this.#isQueued = true; // before it joins: it may be served in there
    if (group.queue.join(this, group.longestLine)) group.queue.claim(this);
    else this.giveUp();
  }

  #leaveQueue(): void {
    if (this.#isQueued) this.#order.group.queue.leave(this);
    this.#isQueued = false;
  }

  #failure(): GatewayError | undefined {
    return this.#lastFailure && atInstance(this.#lastFailure.error, this.#lastFailure.ref.id);
  }

  #noInstance(): GatewayError {
    if (!this.#deps.isAccepting()) return shuttingDown();
    return this.#search.error(this.#deps.fleet.members(this.#order.group.template));
  }

  get #passedMs(): number {
    return this.#deps.now() - this.#deadline.beganAtMs;
  }

  /** Ends the call. It is reported by the end of an attempt under way, if there is one; else as refused. */
  #giveUp(error: GatewayError = this.#failure() ?? this.#noInstance()): void {
    this.#leaveQueue(); // first: what the caller does in its error handler may move the queue
    this.#events.refused(error.code, this.#passedMs);
    this.#subscriber.error(error);
  }

  #finished(attempt: Attempt, ending: ExchangeEnding): void {
    const { group } = this.#order;
    const { ref, sent, passage } = attempt;
    passage.ended?.(ending);
    const isOver = this.#subscriber.closed && attempt !== this.#slowAttempt;
    this.#events.finished(ref, attempt, ending, isOver);
    group.pool.ended(sent, callEndOf(ending));
    group.queue.advance(ref);
  }

  #late(passedMs: number): void {
    // Of two silent instances the error names the one that was asked first.
    const silent = (this.#slowAttempt ?? this.#attempt)?.ref;
    const named = silent ?? this.#beforeAt ?? this.#asked;
    const mayHaveArrived = silent !== undefined || this.#lastFailure?.error.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    if (silent !== undefined) this.#track(silent);
    this.#overdue = named === undefined ? overdue : atInstance(overdue, named.id);
    const told = this.#isWaiting ? this.#failure() : undefined; // it says more than the lack of another instance
    this.#giveUp(told ?? this.#overdue);
  }
}

/** The request as it is sent, without its arrival time, which is for the gateway alone. */
function asSent(request: ExchangeRequest): ExchangeRequest {
  if (request.cameAtMs === undefined) return request;
  const { cameAtMs: _, ...sent } = request;
  return sent;
}
