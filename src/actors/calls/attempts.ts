// The attempts of one call that are under way: the newest one, and earlier ones that continue although no message came
// from them. They stand between the backends and the subscriber of the call: the first one that gets a message is passed on,
// and the others end. The failure of one of them goes this way:
//
//   Attempt.error ──► Attempts.failed ─┬─ 1. Call.goOn: the next attempt begins, or the caller has the error
//                                      └─ 2. Attempt.end: the instance is free, and the event of the attempt says
//                                            whether it was the last one of the call
//
// If the next attempt fails while it begins, that is handled after 2.

import type { Subscriber } from 'rxjs';
import type { SourcedEvent } from '../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../domain/calls/exchange-event.ts';
import type { FailedAttempt } from '../../domain/calls/retry-rules.ts';
import { backendTimeout } from '../../domain/errors/backend-errors.ts';
import { atInstance, type GatewayError } from '../../domain/errors/errors.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { Attempt, type AttemptOwner } from './attempt.ts';
import type { AttemptEnding, CallEvents } from './call-events.ts';
import type { AttemptPlan, CallDeps, RunningCall } from './call-route.ts';
import type { Deadline } from './deadline.ts';

const NONE = Object.freeze<Attempt[]>([]);
/** The most silent attempts of one call; one more attempt may run beside them. */
const MAX_SILENT = 2;

/** The attempts of one call: none before it begins, and none after its end. */
export class Attempts implements AttemptOwner {
  readonly #call: Pick<RunningCall, 'goOn'>;
  readonly deadline: Deadline;
  readonly #deps: CallDeps;
  readonly #group: TemplateGroup;
  readonly #events: CallEvents;
  readonly #subscriber: Subscriber<SourcedEvent>;
  newest: Attempt | undefined;
  /** The attempts before the newest one, oldest first. Each was silent for too long, so that a later one was started. */
  #silent: readonly Attempt[] = NONE;
  /** True once the subscriber has got a message. */
  areAnswering = false;
  /** The failures to handle after the present one; undefined while none is handled. */
  #failures: (() => void)[] | undefined;

  constructor(
    call: Pick<RunningCall, 'goOn'>,
    deadline: Deadline,
    deps: CallDeps,
    group: TemplateGroup,
    events: CallEvents,
    subscriber: Subscriber<SourcedEvent>,
  ) {
    this.#call = call;
    this.deadline = deadline;
    this.#deps = deps;
    this.#group = group;
    this.#events = events;
    this.#subscriber = subscriber;
  }

  /** The oldest attempt that is under way, if any. */
  get first(): Attempt | undefined {
    return this.#silent[0] ?? this.newest;
  }

  get areFull(): boolean {
    return this.#silent.length >= MAX_SILENT;
  }

  /** Starts an attempt, in the same turn in which its instance was chosen. */
  send(ref: InstanceRef, plan: AttemptPlan): void {
    this.#track(ref);
    const trace = plan.request.report?.trace ?? this.#deps.trace();
    const attempt = new Attempt(this, this.#group, ref, plan, this.#events.sent(), trace);
    if (this.newest !== undefined) this.#silent = [...this.#silent, this.newest];
    this.newest = attempt; // before it starts: one that fails synchronously has its successor during its start
    attempt.start();
  }

  /** The error of an attempt that is silent. */
  silence({ sent }: Attempt): GatewayError {
    return backendTimeout(Math.round(this.now() - sent.atMs));
  }

  /** Ends one silent attempt, which has failed then; the others continue. */
  abandon(silent: Attempt): FailedAttempt<InstanceRef> {
    const error = this.silence(silent);
    this.#remove(silent);
    silent.end(atInstance(error, silent.ref.id));
    return silent.failedWith(error);
  }

  /** Ends all, with the call. `overdue`: the error of those without an answer; undefined when the caller has left. */
  end(overdue: GatewayError | undefined): void {
    for (const silent of this.#silent) silent.end(overdue);
    this.newest?.end(overdue);
  }

  // --- for each of them ------------------------------------------------------------------------------------

  now(): number {
    return this.#deps.clock.now();
  }

  onEvent(attempt: Attempt, event: ExchangeEvent): void {
    const { ref, plan } = attempt;
    this.deadline.noteMessage();
    if (plan.receive?.(event) === false) return;
    if (!this.areAnswering) {
      this.areAnswering = true;
      if (this.#silent.length > 0) this.#endOthers(attempt);
    }
    this.#subscriber.next({ event, instanceId: ref.id, serverId: ref.serverId });
  }

  /** After what is handled already, and in a later turn of the event loop when thousands fail together. */
  failed(attempt: Attempt, error: GatewayError): void {
    const { scheduler } = this.#deps;
    const handle = (): void => {
      if (attempt.hasEnded) return; // with its call, or because another attempt has begun to answer
      const failures: (() => void)[] = [];
      this.#failures = failures;
      try {
        this.#remove(attempt);
        this.#call.goOn(attempt.failedWith(error), attempt.plan);
      } finally {
        attempt.end();
        this.#failures = undefined;
        for (const next of failures) scheduler.run(next);
      }
    };
    if (this.#failures === undefined) scheduler.run(handle);
    else this.#failures.push(handle);
  }

  completed(): void {
    this.#subscriber.complete();
  }

  setAwaitingClient(isAwaitingClient: boolean): void {
    this.deadline.setPaused(isAwaitingClient);
  }

  ended(attempt: Attempt, ending: AttemptEnding): void {
    attempt.plan.ended?.(ending);
    const isOver = this.#subscriber.closed && !this.#silent.includes(attempt);
    this.#events.finished(attempt.ref, attempt.number, ending, isOver);
  }

  #remove(attempt: Attempt): void {
    const others = this.#others(attempt);
    this.newest = others.at(-1);
    this.#silent = others.slice(0, -1);
    this.#track(this.newest?.ref);
  }

  /**
   * Ends all except `winner`, which has begun to answer. An attempt whose silence was the reason for a later one counts as
   * failed; the newest one counts as cancelled.
   */
  #endOthers(winner: Attempt): void {
    const { newest } = this;
    const others = this.#others(winner);
    this.newest = winner;
    this.#silent = NONE;
    for (const other of others)
      other.end(other === newest ? undefined : atInstance(this.silence(other), other.ref.id));
  }

  #others(attempt: Attempt): readonly Attempt[] {
    if (this.newest === undefined || this.#silent.length === 0) return NONE;
    return [...this.#silent, this.newest].filter((each) => each !== attempt);
  }

  #track(ref: InstanceRef | undefined): void {
    const { report } = this.#events.request;
    if (report !== undefined) report.sentTo = ref;
  }
}
