// The events of one call, from its start to its end at each instance. All events of one type have the same fields in the
// same order, so that V8 gives them one hidden class: a call usually emits at most four, and thousands of events are
// kept.

import { withoutCredentials } from '../../domain/accounts/written-credentials.ts';
import { type ExchangeRequest, ownerIdOf, toolOf } from '../../domain/calls/exchange.ts';
import type { CallOutcome } from '../../domain/calls/exchange-event.ts';
import type { ErrorCode, GatewayError } from '../../domain/errors/errors.ts';
import type { GatewayEvent } from '../../domain/events/events.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';

/** The result of an attempt whose request was sent. `waitMs`: from the arrival of the call to the start of the attempt. */
export interface AttemptEnding {
  readonly outcome: CallOutcome;
  readonly waitMs: number;
  readonly durationMs: number;
  readonly error: GatewayError | undefined;
}

/** Longest name of a method or a tool in an event, in UTF-16 units: clients choose them, and thousands of events are kept. */
const MAX_NAME_UNITS = 256;

const NO_ATTEMPT = { instanceId: undefined, serverId: undefined, attempt: undefined };

/** Emits the events of one call: one `call.started`, and exactly one last `call.finished`. Of the params they have only the tool. */
export class CallEvents {
  readonly #emit: (event: GatewayEvent) => void;
  readonly #wall: Clock['wall'];
  readonly #template: string;
  readonly number: number;
  readonly request: ExchangeRequest;
  #attempts = 0;
  /** The number of attempts whose end is not reported yet. */
  #underWay = 0;
  #hasEnded = false;

  /** `number`: counts the calls of this gateway process from 1. */
  constructor(
    emit: (event: GatewayEvent) => void,
    wall: Clock['wall'],
    template: string,
    number: number,
    request: ExchangeRequest,
  ) {
    this.#emit = emit;
    this.#wall = wall;
    this.#template = template;
    this.number = number;
    this.request = request;
  }

  started(): void {
    this.#emit(this.#event('call.started', 'exchange.started'));
  }

  /**
   * Reports that no instance took the call. Emits nothing while an attempt is under way: the end of the attempt is
   * then the last event.
   */
  refused(code: ErrorCode, waitMs: number): void {
    if (this.#ends()) this.#endWithoutAttempt('exchange.refused', 'refused', waitMs, code);
  }

  /** Reports that the caller left during the wait. Emits nothing while an attempt is under way, or after the last event. */
  cancelled(waitMs: number): void {
    if (this.#ends()) this.#endWithoutAttempt('exchange.cancelled', 'cancelled', waitMs);
  }

  /** The number of an attempt that failed before its request was sent. */
  nextAttemptNumber(): number {
    this.#attempts += 1;
    const { report } = this.request;
    if (report !== undefined) report.attempts = this.#attempts;
    return this.#attempts;
  }

  /** The number of an attempt that starts now. `finished` must follow. */
  sent(): number {
    this.#underWay += 1;
    return this.nextAttemptNumber();
  }

  /** Reports that the call goes on after the failure of this attempt. */
  retried({ id, serverId }: InstanceRef, attempt: number, code: ErrorCode): void {
    const retried = this.#event('call.retried', 'exchange.retried');
    this.#emit({ ...retried, instanceId: id, serverId, attempt, code });
  }

  /** Reports the end of an attempt. `isOver`: the call has ended with it. */
  finished(ref: InstanceRef, attempt: number, ending: AttemptEnding, isOver: boolean): void {
    this.#underWay -= 1;
    const isLast = isOver && !this.#hasEnded;
    if (isLast) this.#hasEnded = true;
    this.#emit(
      isLast
        ? this.#endOf('call.finished', ref, attempt, ending)
        : this.#endOf('attempt.finished', ref, attempt, ending),
    );
  }

  /**
   * All fields in one literal: V8 keeps fields that are added to a spread copy in a second object, and grows that
   * again and again.
   */
  #endOf<T extends 'call.finished' | 'attempt.finished'>(
    type: T,
    ref: InstanceRef,
    attempt: number,
    { outcome, waitMs, durationMs, error }: AttemptEnding,
  ) {
    const { request } = this;
    const tool = toolOf(request);
    return {
      type,
      alias: 'exchange.finished' as const,
      atMs: this.#wall(),
      template: this.#template,
      call: this.number,
      method: short(request.method),
      tool: tool && short(tool),
      view: request.view,
      principal: ownerIdOf(request),
      requestId: request.requestId,
      instanceId: ref.id,
      serverId: ref.serverId,
      attempt,
      waitMs,
      outcome,
      durationMs,
      isLast: type === 'call.finished',
      code: error?.code,
    };
  }

  #endWithoutAttempt(
    alias: 'exchange.refused' | 'exchange.cancelled',
    outcome: 'refused' | 'cancelled',
    waitMs: number,
    code?: ErrorCode,
  ): void {
    const end = { waitMs, outcome, durationMs: 0, isLast: true, code };
    this.#emit({ ...this.#event('call.finished', alias), ...NO_ATTEMPT, ...end });
  }

  /** The fields that all events of a call have. */
  #event<T extends GatewayEvent['type'], A extends string>(type: T, alias: A) {
    const { request } = this;
    const tool = toolOf(request);
    return {
      type,
      alias,
      atMs: this.#wall(),
      template: this.#template,
      call: this.number,
      method: short(request.method),
      tool: tool && short(tool),
      view: request.view,
      principal: ownerIdOf(request),
      requestId: request.requestId,
    };
  }

  #ends(): boolean {
    if (this.#hasEnded || this.#underWay > 0) return false;
    this.#hasEnded = true;
    return true;
  }
}

/** Shortens a name that a client chose, and hides credentials in it. */
function short(name: string): string {
  return withoutCredentials(name, MAX_NAME_UNITS);
}
