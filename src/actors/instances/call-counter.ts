// Counts the calls of one instance: active calls, which fill its capacity; calls that wait for an answer of their
// client, which do not; reservations of calls between two rounds; and how calls and probes end. InstanceRef,
// Attempt and, for probes, the machine count here synchronously, past the mailbox. The balancer chooses the
// instance. Source: ADR 41, ADR 67.

import { ewma } from '../../balancing/health-score.ts';
import type { CallOutcome } from '../../domain/calls/exchange-event.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import { tooManyAwaitingClient } from '../../domain/errors/session-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isWithinEqualPart, OwnerShares } from '../../domain/memory/owner-shares.ts';

/** The calls of one instance: how many there are, by owner, and how they end. */
export class CallCounter {
  /** Exponentially weighted share of answered calls and probes, 0 to 1. */
  successRate = 1;
  /** Exponentially weighted time to the answer; undefined before the first. */
  latencyMs: number | undefined;
  readonly #awaitingClient = new OwnerShares(LIMITS.callsAwaitingClient);
  readonly #active = new OwnerShares(LIMITS.inFlightPerInstance);
  readonly #reservations = new OwnerShares(LIMITS.callsAwaitingClient);

  /** Calls that are at the instance: active ones, and those that wait for their client. */
  get underWay(): number {
    return this.#active.total + this.#awaitingClient.total;
  }
  /** Calls that fill the capacity. */
  get active(): number {
    return this.#active.total;
  }
  /** Calls between two rounds. */
  get reserved(): number {
    return this.#reservations.total;
  }
  /** All that it has a place for: what users see as calls in flight. */
  get inFlight(): number {
    return this.underWay + this.reserved;
  }
  /** True when nothing is under way. */
  get isIdle(): boolean {
    return this.inFlight === 0;
  }

  /**
   * True when a call of this owner may begin: always below LIMITS.inFlightPerInstance. Above it, a headroom of
   * LIMITS.inFlightHeadroom calls is for owners within an equal part; an owner may begin while it has fewer calls
   * than the headroom has left, so that one owner takes half of it at most, and the next one half of the rest.
   */
  hasCapacityFor(ownerId: string): boolean {
    if (this.active < LIMITS.inFlightPerInstance) return true;
    const taken = Math.max(0, this.active - LIMITS.inFlightPerInstance);
    return this.#active.held(ownerId) < LIMITS.inFlightHeadroom - taken && this.isBelowShare(ownerId);
  }

  /** True when this owner has less than an equal part of the capacity, and one more call would not be above it. */
  isBelowShare(ownerId: string): boolean {
    const held = this.#active.held(ownerId);
    const owners = this.#active.size + (held === 0 ? 1 : 0);
    return isWithinEqualPart(held, owners, LIMITS.inFlightPerInstance);
  }

  begin(ownerId: string): void {
    this.#active.take(ownerId);
  }

  /**
   * A call has ended; one that waits for its client is resumed first. A cancelled call says nothing about the
   * instance, and an error answer is an answer.
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

  /** Adds a call, a probe or an opening to the averages. `durationMs`: the time to its answer, if there was one. */
  record(hasAnswered: boolean, durationMs?: number): void {
    this.successRate = ewma(this.successRate, hasAnswered ? 1 : 0);
    if (durationMs !== undefined) this.latencyMs = ewma(this.latencyMs, durationMs);
  }

  /** A call waits for its client. False when it may not: LIMITS.callsAwaitingClient do already, or its owner's share of them. */
  awaitClient(ownerId: string): boolean {
    if (this.#awaitingClient.isFull || this.#awaitingClient.isShareFull(ownerId)) return false;
    this.#awaitingClient.take(ownerId);
    this.#active.release(ownerId);
    return true;
  }

  /** The call continues, with or without room: its backend works on it already. */
  resume(ownerId: string): void {
    this.#awaitingClient.release(ownerId);
    this.#active.take(ownerId);
  }

  /** The refusal of a further reservation of this owner; undefined while there is room. */
  reservationRefusal(ownerId: string): GatewayError | undefined {
    return awaitingClientRefusal(this.#reservations, ownerId);
  }

  reserve(ownerId: string): void {
    this.#reservations.take(ownerId);
  }

  cancelReservation(ownerId: string): void {
    this.#reservations.release(ownerId);
  }
}

/**
 * The refusal of a further call of this owner that waits for its client: all places (LIMITS.callsAwaitingClient),
 * or the owner's share of them, are taken. Undefined while there is room.
 */
export function awaitingClientRefusal(waiting: OwnerShares, ownerId: string): GatewayError | undefined {
  if (waiting.isShareFull(ownerId)) return tooManyAwaitingClient(waiting.share);
  return waiting.isFull ? tooManyAwaitingClient(LIMITS.callsAwaitingClient) : undefined;
}
