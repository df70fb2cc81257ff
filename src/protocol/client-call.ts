// One request of a client that is under way: observes its exchange, and answers once or not at all. An answer that
// takes longer than a second begins as an event stream, which keeps the connection alive. How messages are written
// is a matter of the era: legacy/legacy-call.ts, modern/modern-call.ts.

import type { Observable, Subscription } from 'rxjs';
import type { Answer, CallReport } from '../domain/calls/exchange.ts';
import { internalError } from '../domain/errors/errors.ts';
import type { Linked } from '../domain/memory/linked-set.ts';
import { type Clock, SLOW_MS } from '../domain/time/clock.ts';
import { SharedTimer, type Waiter } from '../domain/time/shared-timer.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import { aggregateInstance } from './aggregate/names.ts';
import { faultOf, type RpcFailure } from './rpc.ts';

/** Tells answers that they are slow. */
export function slowAnswers(
  { now, background }: Pick<Clock, 'now' | 'background'>,
  scheduler: TaskScheduler,
): SharedTimer {
  return new SharedTimer({ now, alarm: background.alarm, scheduler, waitMs: SLOW_MS });
}

/** `A`: what the exchange emits. */
export abstract class ClientCall<A> implements Waiter {
  readonly report: CallReport;
  links: Linked['links'];
  dueAtMs = 0;
  #subscription: Subscription | undefined;
  #slow: SharedTimer | undefined;
  #isOver = false;

  constructor(report: CallReport) {
    this.report = report;
  }

  /** At the path of all templates: ids of instances are those of the aggregate. */
  abstract readonly isAggregate: boolean;
  /** Begins the stream, unless it has begun. */
  abstract begin(): void;
  /** Writes what belongs to this event of the exchange. An error that it throws fails the request. */
  abstract take(answer: A): void;
  /** The failure as the client gets it. */
  abstract failureOf(thrown: unknown): RpcFailure;
  /** Answers with the failure, and ends. */
  abstract refuse(failure: RpcFailure, thrown: unknown): void;
  abstract noteInstance(instanceId: string): void;
  abstract onFault(error: unknown): void;
  /** The request is over; its answer is not written yet. */
  onOver(): void {}

  get isOver(): boolean {
    return this.#isOver;
  }

  start(answers$: Observable<A>, slow: SharedTimer): void {
    this.#subscription = answers$.subscribe(this);
    this.#slow = slow;
    if (this.#isOver) this.leave();
    else slow.add(this);
  }

  /** Ends it without an answer, on the backend, too. False when it was over. */
  cancel(): boolean {
    if (!this.end()) return false;
    this.report.ended({ kind: 'cancelled' });
    this.leave();
    return true;
  }

  /** False when it was over. Its answer may be written after this. */
  end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#slow?.delete(this);
    this.onOver();
    return true;
  }

  /** Ends the exchange, on the backend, too. */
  leave(): void {
    this.#subscription?.unsubscribe();
  }

  noteInstanceOf({ instanceId, isRemembered }: Pick<Answer, 'instanceId' | 'isRemembered'>): void {
    if (!isRemembered && instanceId !== '') this.noteInstance(instanceId);
  }

  // --- observer of the exchange ----------------------------------------------------------------------------

  next(answer: A): void {
    if (this.#isOver) return;
    try {
      this.take(answer);
    } catch (thrown) {
      this.error(thrown); // such as a message that is nested too deeply to be serialized
    }
  }

  /** An error that is not the backend's. */
  error(thrown: unknown): void {
    if (this.#isOver) return;
    const failure = this.failureOf(thrown);
    this.report.ended({ kind: 'failed', code: failure.errorCode ?? failure.error.code });
    const fault = faultOf(failure);
    if (fault !== undefined) this.onFault(fault);
    this.refuse(failure, thrown);
  }

  complete(): void {
    if (!this.#isOver) this.error(internalError(new Error('the exchange ended without an answer')));
  }

  // ---------------------------------------------------------------------------------------------------------

  /** The answer is slow. */
  onDue(): void {
    if (this.#isOver) return;
    const { sentTo } = this.report;
    // Not the binding of a session, which may be moving.
    if (sentTo !== undefined) this.noteInstance(this.isAggregate ? aggregateInstance(sentTo) : sentTo.id);
    this.begin();
  }
}
