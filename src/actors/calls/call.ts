// One call on its way: choose, count, send, wait, and on to the next instance when that is safe. Choosing and counting
// happen in one synchronous block. A call that may be repeated and stays silent is sent to a second instance, too: the first
// answer wins. Whom it chooses is next-instance.ts, whether it may be made again failover.ts; who may call,
// and the rules in full, are in dispatcher.ts.

import { type Subscriber, Subscription } from 'rxjs';
import type { Sent } from '../../balancing/outliers.ts';
import { ANONYMOUS } from '../../domain/account.ts';
import { backendTimeout, queueFull } from '../../domain/backend-errors.ts';
import type { Clock } from '../../domain/clock.ts';
import { asGatewayError, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import type { Answer, ExchangeEvent } from '../../domain/exchange.ts';
import { atInstance } from '../../domain/failures.ts';
import type { Fleet } from '../fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { finishedEvent, refusedEvent, retriedEvent } from './call-events.ts';
import { asSent, type CallOrder } from './call-order.ts';
import { Deadline, SLOW_PART } from './deadline.ts';
import { affords, isRepeatable, mayGoOn } from './failover.ts';
import { certainlyLacksTool, isOnlyFull, mayLackTool, nextInstance } from './next-instance.ts';
import { noInstanceError } from './no-instance-error.ts';
import { callEndOf, type ExchangeEnding } from './reply.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { QueuedCall, QueuedPlace } from './wait-queue.ts';

export interface CallDeps extends Clock {
  readonly budget: RetryBudget;
  readonly fleet: Pick<Fleet, 'members'>;
  readonly emit: (event: GatewayEvent) => void;
  /** False while the gateway closes: nothing new is started. */
  readonly isAccepting: () => boolean;
}

/** The call at one instance. */
interface Attempt {
  readonly ref: InstanceRef;
  readonly sent: Sent<InstanceRef>;
  readonly mayRepeat: boolean;
  readonly subscription: Subscription;
  /** Why the gateway ended it although the call goes on. */
  overdue: GatewayError | undefined;
}

interface Failure {
  readonly ref: InstanceRef;
  readonly error: GatewayError;
}

/** From the first choice to the end; the subscriber hears of it once. */
export class Call implements QueuedCall {
  readonly #deps: CallDeps;
  readonly #order: CallOrder;
  readonly #subscriber: Subscriber<Answer>;
  readonly #deadline: Deadline;
  #tried: Set<string> | undefined;
  #retries = 0;
  #isAnswering = false;
  /** The tool that is wanted, once somebody turned out not to have it. */
  #lackedTool: string | undefined;
  /** The last instance it was sent to. */
  #asked: InstanceRef | undefined;
  #lastFailure: Failure | undefined;
  #overdue: GatewayError | undefined;
  #attempt: Attempt | undefined;
  /** The one before, which kept silent and goes on. */
  #slowAttempt: Attempt | undefined;
  #isQueued = false;

  constructor(deps: CallDeps, order: CallOrder, subscriber: Subscriber<Answer>) {
    this.#deps = deps;
    this.#order = order;
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
    const { pinned, group } = this.#order;
    if (pinned !== undefined) return pinned === place;
    return group.pool.candidates.some((ref) => ref === place && group.pool.mayBePicked(ref, this.#tried));
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
    this.#stepOutOfLine();
    this.#slowAttempt?.subscription.unsubscribe();
    this.#attempt?.subscription.unsubscribe();
  }

  /** Chooses and sends in one block, or looks up the tool, or waits, or gives up. True when it was sent. */
  #try(): boolean {
    if (this.#subscriber.closed) return false;
    const ref = this.#next();
    if (ref === undefined) this.#wait();
    else if (mayLackTool(this.#order, ref)) this.#lookAgain(ref);
    else if (!this.#affordsToGoOn()) this.#giveUp();
    else return this.#send(ref);
    return false;
  }

  #next(): InstanceRef | undefined {
    let ref = nextInstance(this.#order, this.#tried);
    while (ref !== undefined && certainlyLacksTool(this.#order, ref)) {
      this.#passOver(ref);
      ref = nextInstance(this.#order, this.#tried);
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

  /** An unknown tool may be a new one: the list is looked up once more before the caller hears 404. */
  #lookAgain(ref: InstanceRef): void {
    this.#stepOutOfLine();
    const lookedUp = ref.tools?.lookUp();
    if (lookedUp === undefined) this.#giveUp(this.#failure() ?? queueFull(this.#order.group.template));
    void lookedUp?.then(() => {
      // However old the list is by now: this instance was asked, and it is not asked again.
      if (mayLackTool(this.#order, ref)) this.#passOver(ref);
      this.#try();
    });
  }

  /** False when its caller left on hearing of the retry. `failed` is retried. */
  #send(ref: InstanceRef, failed: Failure | undefined = this.#lastFailure): boolean {
    this.#stepOutOfLine();
    if (failed !== undefined) this.#tellRetry(failed);
    if (this.#subscriber.closed) return false;
    this.#asked = ref;
    const { request, upstream, group } = this.#order;
    this.#track(ref);
    const attempt: Attempt = {
      ref,
      sent: group.pool.sent(ref),
      mayRepeat: isRepeatable(request, ref),
      subscription: new Subscription(),
      overdue: undefined,
    };
    const exchange$ = ref.exchange(asSent(request), {
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
    return true;
  }

  #track(ref: InstanceRef | undefined): void {
    const { tracker } = this.#order.request;
    if (tracker !== undefined) tracker.sentTo = ref;
  }

  #pass(attempt: Attempt, event: ExchangeEvent): void {
    if (!this.#isAnswering) {
      this.#isAnswering = true;
      this.#order.group.pool.heard(attempt.sent);
      this.#endOther(attempt);
    }
    this.#deadline.heard();
    const { ref } = attempt;
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

  #failed(attempt: Attempt, error: GatewayError): void {
    const { ref, mayRepeat } = attempt;
    this.#attempt = this.#other(attempt);
    this.#slowAttempt = undefined;
    this.#lastFailure = { ref, error };
    this.#track(this.#attempt?.ref);
    this.#exclude(ref);
    if (this.#attempt !== undefined) this.#trySecond();
    else if (this.#mayGoOn(error, mayRepeat)) this.#try();
    else this.#giveUp();
  }

  /** Called by the deadline when nothing was heard for long; returns when to call again. */
  #slow(): number {
    const now = this.#deps.now();
    const thirdMs = this.#order.timeoutMs / SLOW_PART;
    const dueAtMs = (this.#attempt?.sent.atMs ?? now) + thirdMs;
    if (now < dueAtMs) return dueAtMs; // it waited in line before
    this.#trySecond();
    this.#order.slow?.();
    return now + thirdMs;
  }

  /** The silent attempt goes on beside it; nothing happens when nobody else could take the call now. */
  #trySecond(): void {
    const { group, pinned, request } = this.#order;
    const silent = this.#attempt;
    if (silent === undefined || this.#slowAttempt !== undefined || !silent.mayRepeat) return;
    if (this.#isAnswering || pinned !== undefined || this.#retries >= group.policy.maxRetries) return;
    this.#exclude(silent.ref);
    const ref = this.#next();
    if (ref === undefined || mayLackTool(this.#order, ref) || !isRepeatable(request, ref)) return;
    if (!this.#deps.budget.take()) return;
    const silentMs = Math.round(this.#deps.now() - silent.sent.atMs);
    this.#send(ref, { ref: silent.ref, error: backendTimeout(silentMs) });
  }

  #mayGoOn({ delivered }: GatewayError, mayRepeat: boolean): boolean {
    const { pinned, group } = this.#order;
    if (this.#isAnswering || pinned !== undefined || this.#retries >= group.policy.maxRetries) return false;
    return mayGoOn(delivered, mayRepeat);
  }

  #affordsToGoOn(): boolean {
    return this.#lastFailure === undefined || affords(this.#deps.budget, this.#lastFailure.error.delivered);
  }

  #tellRetry({ ref, error }: Failure): void {
    this.#retries += 1;
    this.#deps.emit(retriedEvent(ref, this.#order.request, error.code));
  }

  /** Joins the line, or keeps its place there, while somebody who may serve it is only full. */
  #wait(): void {
    const { group } = this.#order;
    const isWorthIt = isOnlyFull(this.#order, this.#tried);
    if (!isWorthIt) this.#giveUp();
    if (!isWorthIt || this.#isQueued) return;
    this.#isQueued = true; // before it joins: it may be served in there
    if (group.queue.join(this, group.longestLine)) group.queue.claim(this);
    else this.giveUp();
  }

  #stepOutOfLine(): void {
    if (this.#isQueued) this.#order.group.queue.leave(this);
    this.#isQueued = false;
  }

  #failure(): GatewayError | undefined {
    return this.#lastFailure && atInstance(this.#lastFailure.error, this.#lastFailure.ref.id);
  }

  #whyNobody(): GatewayError {
    if (!this.#deps.isAccepting()) return shuttingDown();
    const { pinned, group } = this.#order;
    const { template } = group;
    const search = { template, pinned, lackedTool: this.#lackedTool, tried: this.#tried };
    return noInstanceError(search, this.#deps.fleet.members(template));
  }

  /** The last word. A call that never reached an instance is told as refused; one that did was told by its end there. */
  #giveUp(error: GatewayError = this.#failure() ?? this.#whyNobody()): void {
    const { group, request } = this.#order;
    this.#stepOutOfLine(); // first: what the caller does in its error handler may move the line
    if (this.#asked === undefined) this.#deps.emit(refusedEvent(group.template, request, error.code));
    this.#subscriber.error(error);
  }

  #finished({ ref, sent }: Attempt, ending: ExchangeEnding): void {
    const { group, request } = this.#order;
    this.#deps.emit(finishedEvent(ref, request, ending));
    group.pool.ended(sent, callEndOf(ending));
    group.queue.advance(ref);
  }

  #late(passedMs: number): void {
    const mayHaveArrived = this.#attempt !== undefined || this.#lastFailure?.error.delivered === 'unknown';
    const overdue = backendTimeout(Math.round(passedMs), mayHaveArrived ? 'unknown' : 'no');
    // Of two that are silent the one is named that was asked first.
    const silent = (this.#slowAttempt ?? this.#attempt)?.ref;
    if (silent !== undefined) this.#track(silent);
    const named = silent ?? this.#asked;
    this.#overdue = named === undefined ? overdue : atInstance(overdue, named.id);
    this.#giveUp(this.#overdue);
  }
}
