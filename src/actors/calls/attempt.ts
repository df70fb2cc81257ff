// One attempt of a call at one instance. It counts the call at the instance and in the pool, passes the events of the
// conversation to attempts.ts (synchronously, without an actor mailbox between them) and reports its own end. call.ts
// decides what follows a failure, with one exception: after an error with `isRepaired`, the attempt itself sends its
// request once more in the same conversation.

import type { Observer, Subscription } from 'rxjs';
import type { AttemptRecord, AttemptVerdict } from '../../balancing/outliers.ts';
import { type ExchangeRequest, ownerIdOf } from '../../domain/calls/exchange.ts';
import {
  type CallOutcome,
  type ExchangeEvent,
  isAnswered,
  isFinal,
  outcomeOf,
  validAnswer,
} from '../../domain/calls/exchange-event.ts';
import type { AttemptTrace, RequestTrace } from '../../domain/calls/request-trace.ts';
import { type FailedAttempt, isRepeatable } from '../../domain/calls/retry-rules.ts';
import { backendUnavailable, notConnected } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, type GatewayError, perhapsDelivered } from '../../domain/errors/errors.ts';
import { QUESTION_REFUSALS, type ServerRequest, serverRequest } from '../../domain/mcp/client.ts';
import type { TemplateGroup } from '../fleet/template-group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { AttemptEnding } from './call-events.ts';
import type { AttemptPlan } from './call-route.ts';
import type { Deadline } from './deadline.ts';

/** What an attempt needs from the attempts of its call, and what it reports to them. */
export interface AttemptOwner {
  readonly deadline: Pick<Deadline, 'beganAtMs' | 'needsProgress' | 'longestLeftMs'>;
  now(): number;
  onEvent(attempt: Attempt, event: ExchangeEvent): void;
  /** The attempt failed without an answer. It is ended at once or later, after the call has decided what follows. */
  failed(attempt: Attempt, error: GatewayError): void;
  /** The conversation has completed after its answer. A call of `ended` follows. */
  completed(): void;
  /**
   * `true`: the attempt has freed its capacity, because the backend waits for the client. `false`: it uses capacity
   * again.
   */
  setAwaitingClient(isAwaitingClient: boolean): void;
  /** Called exactly once, when nothing of the attempt is under way any more. */
  ended(attempt: Attempt, ending: AttemptEnding): void;
}

/**
 * One attempt of a call, as the observer of its exchange. The call gets exactly one answer or failure from it, and
 * neither if the caller leaves before.
 */
export class Attempt implements Observer<ExchangeEvent> {
  readonly ref: InstanceRef;
  readonly plan: AttemptPlan;
  readonly sent: AttemptRecord<InstanceRef>;
  readonly number: number;
  readonly isRepeatable: boolean;
  readonly #owner: AttemptOwner;
  readonly #group: TemplateGroup;
  readonly #ownerId: string;
  readonly #trace: AttemptTrace | undefined;
  #source: Subscription | undefined;
  #onMessage: ((event: ExchangeEvent) => void) | undefined;
  #outcome: CallOutcome = 'cancelled';
  #error: GatewayError | undefined;
  /** The number of the backend's questions that the client has not answered yet. */
  #openQuestions = 0;
  isAwaitingClient = false;
  /** True after the request was sent a second time in the same conversation: see ErrorFacts.isRepaired. */
  #isResent = false;
  hasEnded = false;

  /** `parent`: the span of the call; undefined when the call is not traced. */
  constructor(
    owner: AttemptOwner,
    group: TemplateGroup,
    ref: InstanceRef,
    plan: AttemptPlan,
    number: number,
    parent: RequestTrace | undefined,
  ) {
    this.#owner = owner;
    this.#group = group;
    this.ref = ref;
    this.plan = plan;
    this.sent = group.pool.outliers.sent(ref);
    this.number = number;
    this.isRepeatable = isRepeatable(plan.request, ref);
    this.#ownerId = ownerIdOf(plan.request);
    this.#trace = parent?.attempt({
      method: plan.request.method,
      params: plan.request.params,
      template: ref.template,
      view: plan.request.view,
      instanceId: ref.id,
      transport: ref.definition.transport,
      number,
    });
  }

  /** Counts the call and sends the request, in one synchronous block. A request that is sent again is not counted again. */
  start(): void {
    const planned = this.plan.conversation;
    const request = this.#request;
    const trace = this.#trace;
    const { opened } = this.ref;
    if (!this.#isResent) this.ref.calls.begin(this.#ownerId);
    try {
      const conversation = planned ?? opened?.transport;
      if (conversation === undefined) throw notConnected();
      // Messages of an independent conversation say nothing about the transport of the instance.
      if (planned?.isIndependent !== true) this.#onMessage = opened?.noteMessage;
      this.#source = conversation.exchange(trace ? { ...request, trace } : request).subscribe(this);
      if (this.hasEnded) this.#source.unsubscribe(); // the caller left at a message that came at once
    } catch (thrown) {
      this.error(thrown); // a fault of the transport costs one call
    }
  }

  /**
   * Cancels what is still under way on the backend. Idempotent. `overdue` is the error when the gateway ends the
   * attempt and not its caller: an attempt without an answer then counts as failed instead of cancelled.
   */
  end(overdue?: GatewayError): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#source?.unsubscribe();
    this.#endAwaitingClient();
    if (overdue !== undefined && this.#outcome === 'cancelled') {
      this.#outcome = 'failed';
      this.#error = overdue;
    }
    const { atMs } = this.sent;
    const ending: AttemptEnding = {
      outcome: this.#outcome,
      waitMs: atMs - this.#owner.deadline.beganAtMs,
      durationMs: this.#owner.now() - atMs,
      error: this.#error,
    };
    this.ref.calls.end(this.#ownerId, ending);
    this.ref.callEnded(ending.error);
    this.#trace?.ended(ending.error?.code);
    this.#owner.ended(this, ending);
    this.#group.pool.outliers.ended(this.sent, verdictOf(ending));
    this.#group.queue.advance(this.ref);
  }

  /** This attempt as one that has failed with this error. */
  failedWith(error: GatewayError): FailedAttempt<InstanceRef> {
    const { ref, number, isRepeatable, plan } = this;
    return { ref, number, isRepeatable, error, sentIn: plan.conversation?.isReused ? 'reused' : 'fresh' };
  }

  // --- observer of the conversation ------------------------------------------------------------------------

  /** Passes one event to the call. Events after the answer, or after the end of the attempt, are dropped. */
  next(received: ExchangeEvent): void {
    if (this.#isAnswered || this.hasEnded) return;
    const event = isFinal(received) ? validAnswer(received) : received;
    this.#onMessage?.(event);
    if (event.kind === 'request') {
      this.#ask(event);
      return;
    }
    if (isFinal(event)) {
      this.#outcome = outcomeOf(this.plan.request.method, event);
      this.#trace?.answered(event);
    }
    this.#pass(event);
  }

  error(thrown: unknown): void {
    if (this.hasEnded) return;
    if (this.#isAnswered) {
      this.complete();
      return;
    }
    const error = asGatewayError(thrown);
    if (error.facts.isRepaired && !this.#isResent && this.plan.request.mayBeSent?.() !== false) {
      this.#isResent = true;
      this.start();
      return;
    }
    // Without `delivered` it counts as unknown, so that only a request that is safe to repeat is retried.
    this.#error = error.facts.delivered === undefined ? perhapsDelivered(error) : error;
    this.#outcome = 'failed';
    this.#owner.failed(this, this.#error);
  }

  complete(): void {
    if (!this.#isAnswered) {
      this.error(
        backendUnavailable('it ended without an answer', { delivered: 'unknown', health: 'suspicious' }),
      );
      return;
    }
    try {
      this.#owner.completed();
    } finally {
      this.end();
    }
  }

  /**
   * Passes a question of the backend to the client, before waiting calls use the freed capacity: the client may answer
   * synchronously.
   */
  #ask(request: ServerRequest): void {
    if (!this.#awaitClient()) {
      request.answer(QUESTION_REFUSALS.tooManyWait);
      return;
    }
    this.#openQuestions += 1;
    const { answer } = request; // without the params, which may be large, and are not counted while the client decides
    const passed = serverRequest(request, (reply) => {
      this.#openQuestions -= 1;
      if (this.#openQuestions === 0) this.#endAwaitingClient();
      answer(reply);
    });
    this.#pass(passed);
    if (this.isAwaitingClient) this.#group.queue.advance(this.ref);
  }

  /** Frees the capacity of the attempt; false when too many calls wait for their client. */
  #awaitClient(): boolean {
    if (this.isAwaitingClient) return true;
    if (!this.ref.calls.beginAwaitingClient(this.#ownerId)) return false;
    this.isAwaitingClient = true;
    this.#group.pool.outliers.setAwaitingClient(this.sent, true);
    this.#owner.setAwaitingClient(true);
    return true;
  }

  #endAwaitingClient(): void {
    if (!this.isAwaitingClient) return;
    this.isAwaitingClient = false;
    this.ref.calls.endAwaitingClient(this.#ownerId);
    this.#group.pool.outliers.setAwaitingClient(this.sent, false);
    this.#owner.setAwaitingClient(false);
  }

  #pass(event: ExchangeEvent): void {
    this.#group.pool.outliers.noteMessage(this.sent);
    this.#owner.onEvent(this, event);
  }

  get #request(): ExchangeRequest {
    const { request } = this.plan;
    const asksForProgress = request.method === 'tools/call' && this.#owner.deadline.needsProgress;
    const timed = this.ref.isElsewhere
      ? { ...request, longestMs: this.#owner.deadline.longestLeftMs }
      : request;
    const known = asksForProgress ? { ...timed, wantsProgress: true } : timed;
    const asked = this.ref.definition.auth === undefined ? known : { ...known, held: this.#held };
    return this.#isResent ? { ...asked, isResent: true } : asked;
  }

  get #held(): (isHeld: boolean) => void {
    return (isHeld) => this.#group.pool.outliers.setHeld(this.sent, isHeld);
  }

  get #isAnswered(): boolean {
    return isAnswered(this.#outcome);
  }
}

/**
 * What the end of an attempt says about its backend. An attempt without an answer counts as failed only if
 * its error is the fault of the backend: not when the attempt was cancelled, refused before anything was sent, or too
 * large. Source: ADR 39.
 */
function verdictOf({ outcome, error }: AttemptEnding): AttemptVerdict {
  if (isAnswered(outcome)) return 'answered';
  return error?.facts.health === undefined ? 'inconclusive' : 'failed';
}
