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
import type { GatewayEvent } from '../../domain/events.ts';
import type { Answer, CallRecord, ExchangeEvent, FinalEvent } from '../../domain/exchange.ts';
import type { Fleet } from '../fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { type Attempted, cancelledEvent, finishedEvent, refusedEvent, retriedEvent } from './call-events.ts';
import { asSent, type CallOrder, certainlyLacksTool, mayLackTool } from './call-order.ts';
import { callEndOf, type ExchangeEnding } from './call-reply.ts';
import { Deadline, SLOW_PART } from './deadline.ts';
import { noInstanceError } from './no-instance-error.ts';
import { affords, isRepeatable, mayGoOn, type RetryBudget } from './retry.ts';
import type { CallRoute, Passage } from './routes.ts';
import type { TraceDeps } from './traced-exchange.ts';
import { tracedExchange } from './traced-exchange.ts';
import type { QueuedCall, QueuedPlace } from './wait-queue.ts';

export interface CallDeps extends Clock, TraceDeps {
  readonly budget: RetryBudget;
  readonly fleet: Pick<Fleet, 'members'>;
  readonly emit: (event: GatewayEvent) => void;
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
  readonly #record: CallRecord;
  readonly #route: CallRoute;
  readonly #subscriber: Subscriber<Answer>;
  readonly #deadline: Deadline;
  #tried: Set<string> | undefined;
  #retries = 0;
  #isAnswering = false;
  /** The missing tool, once an instance turned out not to have it. */
  #lackedTool: string | undefined;
  /** The last instance it was sent to. */
  #asked: InstanceRef | undefined;
  #lastFailure: Failure | undefined;
  #overdue: GatewayError | undefined;
  #attempt: Attempt | undefined;
  /** The attempt before it, which is silent and goes on. */
  #slowAttempt: Attempt | undefined;
  #isQueued = false;
  /** Attempts whose end was not reported yet. */
  #underWay = 0;
  #isReported = false;
  /** The opening before an attempt, and its instance. */
  #opening: Subscription | undefined;
  #openingAt: InstanceRef | undefined;

  /** `record`: the number of the call, and the attempts before, if it is repeated. */
  constructor(deps: CallDeps, order: CallOrder, record: CallRecord, subscriber: Subscriber<Answer>) {
    this.#deps = deps;
    this.#order = order;
    this.#record = record;
    this.#route = order.route;
    this.#subscriber = subscriber;
    const { timeoutMs, request } = order;
    const onOver = (passedMs: number) => this.#late(passedMs);
    this.#deadline = new Deadline(deps, timeoutMs, onOver, request.cameAtMs, () => this.#slow());
  }

  begin(): void {
    this.#try();
  }

  // --- for the queue -----------------------------------------------------------------------------------------------

  get ownerId(): string {
    return this.#order.request.caller ?? ANONYMOUS.id;
  }

  waitsFor(place: QueuedPlace): boolean {
    return this.#route.waitsFor(place, this.#tried);
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
    this.#opening?.unsubscribe();
    this.#slowAttempt?.subscription.unsubscribe();
    this.#attempt?.subscription.unsubscribe();
    this.#route.end();
    if (this.#isReported || this.#underWay > 0) return; // the end of the attempt reports it
    const { group, request } = this.#order;
    this.#deps.emit(cancelledEvent(group.template, this.#record, request, this.#passedMs));
  }

  /** Chooses and sends in one block, or looks up the tool, or waits, or gives up. True when it was sent. */
  #try(): boolean {
    if (this.#subscriber.closed) return false;
    const ref = this.#next();
    if (ref === undefined) this.#wait();
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
      passage = this.#route.passageTo(ref, this.#tried);
    } catch (thrown) {
      this.#unopened(ref, asGatewayError(thrown));
      return false;
    }
    if (passage.opening !== undefined) this.#open(ref, passage.opening);
    else if (passage.answer !== undefined) this.#answer(ref, passage.answer);
    else {
      this.#send(ref, passage);
      return true;
    }
    return false;
  }

  #open(ref: InstanceRef, opening$: Observable<unknown>): void {
    const opening = new Subscription();
    this.#opening = opening; // before subscribing: it may be open, or fail, in there
    this.#openingAt = ref;
    opening.add(
      opening$.subscribe({
        next: () => {
          this.#openingAt = undefined;
          this.#try();
        },
        error: (thrown: unknown) => this.#unopened(ref, asGatewayError(thrown)),
      }),
    );
  }

  /** Counts as a failed attempt, although nothing was sent. */
  #unopened(ref: InstanceRef, error: GatewayError): void {
    this.#openingAt = undefined;
    this.#fail(ref, error, this.#countAttempt());
    if (this.#mayGoOn(error, false)) this.#try();
    else this.#giveUp();
  }

  #answer(ref: InstanceRef, event: FinalEvent): void {
    const { id, serverId } = ref;
    const attempt = { call: this.#record.call, attempt: this.#countAttempt(), waitMs: this.#passedMs };
    const ending = { outcome: event.kind, durationMs: 0, error: undefined };
    this.#isReported = true;
    this.#deps.emit(finishedEvent(ref, attempt, this.#order.request, ending, true));
    this.#subscriber.next({ event, instanceId: id, serverId });
    this.#subscriber.complete();
  }

  #next(): InstanceRef | undefined {
    let ref = this.#route.next(this.#tried);
    while (ref !== undefined && certainlyLacksTool(this.#order, ref)) {
      this.#passOver(ref);
      ref = this.#route.next(this.#tried);
    }
    return ref;
  }

  #passOver(ref: InstanceRef): void {
    this.#lackedTool = this.#order.wantedTool;
    this.#exclude(ref);
  }

  #exclude(ref: InstanceRef): void {
    this.#tried ??= new Set();
    this.#tried.add(ref.id);
  }

  /** An unknown tool may be a new one: the list is looked up once more before the caller gets 404. */
  #lookAgain(ref: InstanceRef): void {
    this.#leaveQueue();
    const lookedUp = ref.tools?.lookUp();
    if (lookedUp === undefined) this.#giveUp(this.#failure() ?? queueFull(this.#order.group.template));
    void lookedUp?.then(() => {
      // Whatever the age of the list: this instance was asked, and is not asked again.
      if (mayLackTool(this.#order, ref)) this.#passOver(ref);
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
      call: this.#record.call,
      attempt: this.#countAttempt(),
      waitMs: sent.atMs - this.#deadline.beganAtMs,
      ref,
      passage,
      sent,
      mayRepeat: isRepeatable(request, ref),
      subscription: new Subscription(),
      overdue: undefined,
    };
    this.#underWay += 1;
    const exchange$ = tracedExchange(this.#deps, ref, asSent(request), attempt.attempt, {
      finished: (ending) => this.#finished(attempt, ending),
      overdue: () => attempt.overdue ?? this.#overdue,
      rested: () => this.#order.group.queue.advance(ref),
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

  /** The number of the attempt that begins, or that ended before it was sent. */
  #countAttempt(): number {
    this.#record.attempts += 1;
    return this.#record.attempts;
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
      const silentMs = Math.round(this.#deps.now() - other.sent.atMs);
      other.overdue = atInstance(backendTimeout(silentMs), other.ref.id);
    }
    this.#attempt = winner;
    this.#slowAttempt = undefined;
    other.subscription.unsubscribe();
  }

  #other(attempt: Attempt): Attempt | undefined {
    return attempt === this.#attempt ? this.#slowAttempt : this.#attempt;
  }

  #failed(failed: Attempt, error: GatewayError): void {
    const { ref, passage, mayRepeat, attempt } = failed;
    this.#attempt = this.#other(failed);
    this.#slowAttempt = undefined;
    this.#track(this.#attempt?.ref);
    const isAgain = !this.#isAnswering && this.#attempt === undefined && passage.failed?.(error);
    if (!isAgain) this.#fail(ref, error, attempt);
    if (isAgain) this.#try();
    else if (this.#attempt !== undefined) this.#trySecond();
    else if (this.#mayGoOn(error, mayRepeat)) this.#try();
    else this.#giveUp();
  }

  /** A request that certainly did not arrive the last time may have arrived before. */
  #fail(ref: InstanceRef, error: GatewayError, attempt: number): void {
    const isUncertain = error.delivered === 'no' && this.#lastFailure?.error.delivered === 'unknown';
    this.#lastFailure = {
      ref,
      error: isUncertain ? perhapsDelivered(error) : error,
      attempt,
      isPaid: error.delivered === 'no',
      isTold: false,
    };
    this.#exclude(ref);
  }

  /** Called by the deadline after a long silence; returns when to call again. */
  #slow(): number {
    const now = this.#deps.now();
    const thirdMs = this.#order.timeoutMs / SLOW_PART;
    const dueAtMs = (this.#attempt?.sent.atMs ?? now) + thirdMs;
    if (now < dueAtMs) return dueAtMs; // it waited before it was sent
    this.#trySecond();
    this.#order.slow?.();
    return now + thirdMs;
  }

  /** The silent attempt goes on beside it; nothing happens when no other instance can take the call now. */
  #trySecond(): void {
    const { request } = this.#order;
    const silent = this.#attempt;
    if (silent === undefined || this.#slowAttempt !== undefined || !silent.mayRepeat) return;
    if (!this.#mayRetry()) return;
    this.#exclude(silent.ref);
    const ref = this.#next();
    if (ref === undefined || mayLackTool(this.#order, ref) || !isRepeatable(request, ref)) return;
    if (!this.#route.mayBeSecond(ref)) return;
    if (!this.#deps.budget.take()) {
      this.#route.end();
      return;
    }
    const silentMs = Math.round(this.#deps.now() - silent.sent.atMs);
    this.#tellRetry(silent, backendTimeout(silentMs));
    if (!this.#subscriber.closed) this.#send(ref, this.#route.passageTo(ref, this.#tried));
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
    this.#deps.emit(retriedEvent(ref, { call: this.#record.call, attempt }, this.#order.request, code));
  }

  /** Joins the queue, or keeps its turn there, while an instance that may serve it is only full. */
  #wait(): void {
    const { group } = this.#order;
    const isWorthIt = this.#route.isOnlyFull(this.#tried);
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
    const { template } = this.#order.group;
    const { bound } = this.#route;
    const search = { template, bound, lackedTool: this.#lackedTool, tried: this.#tried };
    return noInstanceError(search, this.#deps.fleet.members(template));
  }

  get #passedMs(): number {
    return this.#deps.now() - this.#deadline.beganAtMs;
  }

  /** Ends the call. It is reported by the end of an attempt under way, if there is one; else as refused. */
  #giveUp(error: GatewayError = this.#failure() ?? this.#noInstance()): void {
    const { group, request } = this.#order;
    this.#leaveQueue(); // first: what the caller does in its error handler may move the queue
    if (this.#underWay === 0) {
      this.#isReported = true;
      this.#deps.emit(refusedEvent(group.template, this.#record, request, error.code, this.#passedMs));
    }
    this.#subscriber.error(error);
  }

  #finished(attempt: Attempt, ending: ExchangeEnding): void {
    const { group, request } = this.#order;
    const { ref, sent, passage } = attempt;
    passage.ended?.(ending);
    this.#underWay -= 1;
    const isLast = this.#subscriber.closed && attempt !== this.#slowAttempt;
    if (isLast) this.#isReported = true;
    this.#deps.emit(finishedEvent(ref, attempt, request, ending, isLast));
    group.pool.ended(sent, callEndOf(ending));
    group.queue.advance(ref);
  }

  #late(passedMs: number): void {
    const mayHaveArrived = this.#attempt !== undefined || this.#lastFailure?.error.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    // Of two silent instances the error names the one that was asked first.
    const silent = (this.#slowAttempt ?? this.#attempt)?.ref;
    if (silent !== undefined) this.#track(silent);
    const named = silent ?? this.#openingAt ?? this.#asked;
    this.#overdue = named === undefined ? overdue : atInstance(overdue, named.id);
    this.#giveUp(this.#overdue);
  }
}
