// One request of a client that is under way: observes its exchange, and answers once or not at all. An answer that takes longer than a
// second begins as an event stream, which keeps the connection alive. How messages are written is a matter of the era:
// legacy/legacy-call.ts, modern/modern-call.ts.

import type { Observable, Subscription } from 'rxjs';
import type { Answer, CallReport } from '../domain/calls/exchange.ts';
import { internalError } from '../domain/errors/errors.ts';
import { type Linked, LinkedSet } from '../domain/memory/call-map.ts';
import { type Clock, SLOW_MS } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import { aggregateInstance } from './aggregate/names.ts';
import { faultOf, type RpcFailure } from './rpc.ts';

/** Answers that begin within this time are told together, in ms: the later ones so much early. */
const TOGETHER_MS = 50;

interface SlowAnswer extends Linked {
  slowAtMs: number;
  onSlow(): void;
}

/**
 * Tells answers that they are slow. All wait equally long, so that the first has one timer for all: a timer for each would be a
 * sixtieth of the garbage of a call.
 */
export class SlowAnswers {
  readonly #clock: Pick<Clock, 'now' | 'background'>;
  readonly #scheduler: Pick<TaskScheduler, 'run'>;
  /** In the order in which they began. */
  readonly #waiting = new LinkedSet<SlowAnswer>();
  /** When the timer rings; undefined without one. */
  #ringsAtMs: number | undefined;

  constructor(clock: Pick<Clock, 'now' | 'background'>, scheduler: Pick<TaskScheduler, 'run'>) {
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  add(answer: SlowAnswer): void {
    answer.slowAtMs = this.#clock.now() + SLOW_MS;
    this.#waiting.add(answer);
    if (this.#ringsAtMs === undefined) this.#arm(answer.slowAtMs, SLOW_MS);
  }

  delete(answer: SlowAnswer): void {
    this.#waiting.delete(answer);
  }

  #arm(ringsAtMs: number, waitMs: number): void {
    this.#ringsAtMs = ringsAtMs;
    this.#clock.background.alarm(waitMs, () => this.#ring(ringsAtMs));
  }

  #ring(dueMs: number): void {
    this.#ringsAtMs = undefined;
    // A timer may ring a fraction of a millisecond early.
    const nowMs = Math.max(this.#clock.now(), dueMs);
    let { first } = this.#waiting;
    for (; first !== undefined && first.slowAtMs <= nowMs + TOGETHER_MS; first = this.#waiting.first) {
      const due = first;
      this.#waiting.delete(due);
      this.#scheduler.run(() => due.onSlow());
    }
    if (first !== undefined && this.#ringsAtMs === undefined)
      this.#arm(first.slowAtMs, first.slowAtMs - nowMs);
  }
}

/** `A`: what the exchange emits. */
export abstract class AnswerWriter<A> implements SlowAnswer {
  readonly report: CallReport;
  links: Linked['links'];
  slowAtMs = 0;
  #subscription: Subscription | undefined;
  #slow: SlowAnswers | undefined;
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

  start(answers$: Observable<A>, slow: SlowAnswers): void {
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

  // --- observer of the exchange ----------------------------------------------------------------------------------------

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

  // -----------------------------------------------------------------------------------------------------------------

  onSlow(): void {
    if (this.#isOver) return;
    const { sentTo } = this.report;
    // Not the binding of a session, which may be moving.
    if (sentTo !== undefined) this.noteInstance(this.isAggregate ? aggregateInstance(sentTo) : sentTo.id);
    this.begin();
  }
}
