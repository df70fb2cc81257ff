// Counts the calls of one instance: active calls, which fill its capacity; calls that wait for an answer of their
// client, and do not fill it; reservations of calls between two rounds; and the results of calls and probes. InstanceRef
// and Attempt, and for probes the instance machine, call it synchronously, without a mailbox between them. The balancer
// chooses the instance. Source: ADR 41, ADR 2.

import { ewma } from '../../balancing/health-score.ts';
import type { CallOutcome } from '../../domain/calls/exchange-event.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { tooManyAwaitingClient } from '../../domain/errors/session-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isWithinEqualPart, UserShares } from '../../domain/memory/user-shares.ts';

/** Calls that wait per instance when all are full. Over it: 429 QUEUE_FULL. */
export const MAX_QUEUED_PER_INSTANCE = 256;

/** The calls of one instance: their number, in total and by owner, and how they end. */
export class CallCounter {
  /** The exponentially weighted share of calls and probes that were answered, 0 to 1. */
  successRate = 1;
  /** The exponentially weighted time to the answer, in ms; undefined before the first answer. */
  latencyMs: number | undefined;
  readonly #awaitingClient = new UserShares(LIMITS.callsAwaitingClient);
  readonly #active = new UserShares(LIMITS.inFlightPerInstance);
  readonly #reservations = new UserShares(LIMITS.callsAwaitingClient);

  /** The number of calls at the instance: active ones, and those that wait for their client. */
  get underWay(): number {
    return this.#active.total + this.#awaitingClient.total;
  }
  /** The number of active calls, which fill the capacity. */
  get active(): number {
    return this.#active.total;
  }
  /** The number of calls between two rounds. */
  get reserved(): number {
    return this.#reservations.total;
  }
  /** The number of all calls with a place at the instance, reservations included; users see it as calls in flight. */
  get inFlight(): number {
    return this.underWay + this.reserved;
  }
  /** True when no call and no reservation is left. */
  get isIdle(): boolean {
    return this.inFlight === 0;
  }

  /**
   * True when a call of this owner may begin. Below LIMITS.inFlightPerInstance it always may. Above,
   * LIMITS.inFlightHeadroom further calls are for owners within an equal part, and an owner may begin only while it
   * has fewer calls than the headroom has left: so one owner takes at most half of the headroom, and the next owner
   * half of the rest.
   */
  hasCapacityFor(ownerId: string): boolean {
    if (this.active < LIMITS.inFlightPerInstance) return true;
    const taken = Math.max(0, this.active - LIMITS.inFlightPerInstance);
    return this.#active.held(ownerId) < LIMITS.inFlightHeadroom - taken && this.isBelowShare(ownerId);
  }

  /** True when this owner has less than an equal part of the capacity, so that one more call stays within it. */
  isBelowShare(ownerId: string): boolean {
    const held = this.#active.held(ownerId);
    const owners = this.#active.size + (held === 0 ? 1 : 0);
    return isWithinEqualPart(held, owners, LIMITS.inFlightPerInstance);
  }

  begin(ownerId: string): void {
    this.#active.add(ownerId);
  }

  /**
   * Counts the end of a call. A call that waits for its client must be resumed first. A cancelled call says nothing
   * about the instance; an error answer counts as an answer.
   */
  end(
    ownerId: string,
    { outcome, durationMs }: { readonly outcome: CallOutcome; readonly durationMs: number },
  ): void {
    this.#active.release(ownerId);
    if (outcome === 'cancelled') return;
    const isAnswered = outcome !== 'failed';
    this.record(isAnswered, isAnswered ? durationMs : undefined);
  }

  /**
   * Adds the result of a call, a probe or an opening to the averages. `durationMs`: the time to its answer, if there
   * was one.
   */
  record(hasAnswered: boolean, durationMs?: number): void {
    this.successRate = ewma(this.successRate, hasAnswered ? 1 : 0);
    if (durationMs !== undefined) this.latencyMs = ewma(this.latencyMs, durationMs);
  }

  /**
   * Counts a call as waiting for its client. Returns false, without effect, when LIMITS.callsAwaitingClient calls
   * wait already, or the owner's share of them.
   */
  beginAwaitingClient(ownerId: string): boolean {
    if (this.#awaitingClient.exceededBy(ownerId) !== undefined) return false;
    this.#awaitingClient.add(ownerId);
    this.#active.release(ownerId);
    return true;
  }

  /** Counts a waiting call as active again, even above the capacity, since its backend already works on it. */
  endAwaitingClient(ownerId: string): void {
    this.#awaitingClient.release(ownerId);
    this.#active.add(ownerId);
  }

  /** The error for one more reservation of this owner; undefined while there is room. */
  reservationRefusal(ownerId: string): GatewayError | undefined {
    return awaitingClientRefusal(this.#reservations, ownerId);
  }

  reserve(ownerId: string): void {
    this.#reservations.add(ownerId);
  }

  cancelReservation(ownerId: string): void {
    this.#reservations.release(ownerId);
  }
}

/**
 * The error for one more call of this owner that waits for its client, when all places
 * (LIMITS.callsAwaitingClient) or the owner's share of them are taken; undefined while there is room.
 */
export function awaitingClientRefusal(waiting: UserShares, ownerId: string): GatewayError | undefined {
  const exceeded = waiting.exceededBy(ownerId);
  return exceeded && tooManyAwaitingClient(exceeded.most);
}
