// One request of a client that is under way: observes its exchange, and answers once or not at all. An answer that takes
// longer than a second begins as an event stream, which keeps the connection alive. The subclasses write the messages of
// their era: legacy/legacy-call.ts, modern/modern-call.ts.

import type { Observable, Subscription } from 'rxjs';
import type { CallReport, SourcedEvent } from '../domain/calls/exchange.ts';
import { internalError } from '../domain/errors/errors.ts';
import type { Linked } from '../domain/memory/linked-set.ts';
import { backgroundClock, type Clock } from '../domain/time/clock.ts';
import { SharedTimer, type Waiter } from '../domain/time/shared-timer.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import { shownInstance } from './aggregate/aggregate-names.ts';
import type { FaultListener } from './endpoint-types.ts';
import { internalFaultOf, type RpcFailure } from './rpc.ts';

/** The age of a call at which its stream begins without a message, in ms, so that client and proxies see that it is under way. */
export const SLOW_ANSWER_MS = 1_000;

/** Makes the timer that reports slow answers to their calls. */
export function createSlowAnswerTimer(clock: Clock, scheduler: TaskScheduler): SharedTimer {
  return new SharedTimer({ clock: backgroundClock(clock), scheduler, waitMs: SLOW_ANSWER_MS });
}

/** A request under way. `E` is the type of the events that its exchange emits. */
export abstract class ClientCall<E> implements Waiter {
  readonly report: CallReport;
  readonly #onFault: FaultListener;
  links: Linked['links'];
  dueAtMs = 0;
  #subscription: Subscription | undefined;
  #slowAnswerTimer: SharedTimer | undefined;
  #isOver = false;

  constructor(report: CallReport, onFault: FaultListener) {
    this.report = report;
    this.#onFault = onFault;
  }

  /** The name in the path, of a template or a view; undefined at that of all templates. */
  abstract readonly pathName: string | undefined;
  /** Begins the event stream, unless it has begun. */
  abstract begin(): void;
  /** Writes the message for one event of the exchange. An error that it throws fails the request. */
  abstract take(sourced: E): void;
  /** The failure in the form that the client gets. */
  abstract failureOf(thrown: unknown): RpcFailure;
  /** Answers with the failure, and ends the request. */
  abstract refuse(failure: RpcFailure, thrown: unknown): void;
  abstract noteInstance(instanceId: string): void;
  /** Called when the request is over, before its answer is written. */
  onOver(): void {}

  get isOver(): boolean {
    return this.#isOver;
  }

  start(events$: Observable<E>, slowAnswerTimer: SharedTimer): void {
    this.#subscription = events$.subscribe(this);
    this.#slowAnswerTimer = slowAnswerTimer;
    if (this.#isOver) this.leave();
    else slowAnswerTimer.add(this);
  }

  /** Ends the request without an answer, and cancels it on the backend. Returns false when it was over already. */
  cancel(): boolean {
    if (!this.end()) return false;
    this.report.ended({ kind: 'cancelled' });
    this.leave();
    return true;
  }

  /** Marks the request as over; its answer may be written afterwards. Returns false when it was over already. */
  end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#slowAnswerTimer?.delete(this);
    this.onOver();
    return true;
  }

  /** Ends the exchange, and cancels it on the backend. */
  leave(): void {
    this.#subscription?.unsubscribe();
  }

  noteInstanceOf({ instanceId, isRemembered }: Pick<SourcedEvent, 'instanceId' | 'isRemembered'>): void {
    if (!isRemembered && instanceId !== '') this.noteInstance(instanceId);
  }

  /** Called when the answer is slow: begins the event stream. */
  onDue(): void {
    if (this.#isOver) return;
    const { sentTo } = this.report;
    // The binding of a session is not used: it may be moving.
    if (sentTo !== undefined) this.noteInstance(shownInstance(sentTo, this.pathName));
    this.begin();
  }

  // --- observer of the exchange ----------------------------------------------------------------------------

  next(sourced: E): void {
    if (this.#isOver) return;
    try {
      this.take(sourced);
    } catch (thrown) {
      this.error(thrown); // such as a message that is nested too deeply to be serialized
    }
  }

  /** Handles an error of the exchange, as opposed to an error answer of the backend. */
  error(thrown: unknown): void {
    if (this.#isOver) return;
    const failure = this.failureOf(thrown);
    this.report.ended({ kind: 'failed', code: failure.errorCode ?? failure.error.code });
    const fault = internalFaultOf(failure);
    if (fault !== undefined) this.#onFault(fault);
    this.refuse(failure, thrown);
  }

  complete(): void {
    if (!this.#isOver) this.error(internalError(new Error('the exchange ended without an answer')));
  }
}
