// The calls of one instance, counted once: calls that it works on, which fill its capacity; calls that wait for an answer of
// their client, which do not; reservations for calls between two rounds; and how calls and probes end. InstanceRef, replies,
// reservations and, for probes, the machine count here at once, past the mailbox. The balancer decides which instance a call
// goes to. Source: ADR 41, ADR 67.

import { ewma } from '../../balancing/health-score.ts';
import { parkedCallsFull, parkedShareLimit } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { ExchangeOutcome } from '../../domain/events.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isWithinEqualPart, OwnerShares } from './owner-shares.ts';

/** How a call ended, as far as it is counted. */
interface CountedEnd {
  readonly outcome: ExchangeOutcome;
  readonly durationMs: number;
}

export class CallCounter {
  #carried = 0;
  #resting = 0;
  /** Calls that rested and went on, perhaps above the capacity. */
  #returned = 0;
  #reserved = 0;
  #requests = 0;
  #errors = 0;
  #successRate = 1;
  #latencyMs: number | undefined;
  readonly #restingBy = new OwnerShares(LIMITS.parkedCalls);
  readonly #workingBy = new OwnerShares(LIMITS.inFlightPerInstance);
  readonly #reservedBy = new OwnerShares(LIMITS.parkedCalls);

  /** All calls in flight. */
  get carried(): number {
    return this.#carried;
  }
  /** Calls that fill the capacity. */
  get working(): number {
    return this.#carried - this.#resting;
  }
  /** Calls between two rounds. */
  get reserved(): number {
    return this.#reserved;
  }
  /** True when nothing is under way. */
  get isIdle(): boolean {
    return this.#carried === 0 && this.#reserved === 0;
  }
  /** Calls so far. */
  get requests(): number {
    return this.#requests;
  }
  /** Ended calls that failed, or were answered with an error. */
  get errors(): number {
    return this.#errors;
  }
  /** Exponentially weighted share of answered calls and probes, 0 to 1. */
  get successRate(): number {
    return this.#successRate;
  }
  /** Exponentially weighted time to the answer; undefined before the first. */
  get latencyMs(): number | undefined {
    return this.#latencyMs;
  }

  /**
   * True when a call of this owner may begin: below LIMITS.inFlightPerInstance always. Above it, LIMITS.inFlightReserve
   * calls are for owners within an equal part, each of which may have as many as the reserve has room: the reserve is
   * halved from owner to owner and is never taken by one of them alone.
   */
  hasPlaceFor(ownerId: string): boolean {
    if (this.working < LIMITS.inFlightPerInstance) return true;
    const taken = Math.max(0, this.working - this.#returned - LIMITS.inFlightPerInstance);
    return this.#workingBy.held(ownerId) < LIMITS.inFlightReserve - taken && this.isBelowShare(ownerId);
  }

  /** True when this owner has less than an equal part of the capacity, and one more call would not be above it. */
  isBelowShare(ownerId: string): boolean {
    const held = this.#workingBy.held(ownerId);
    const owners = this.#workingBy.size + (held === 0 ? 1 : 0);
    return isWithinEqualPart(held, owners, LIMITS.inFlightPerInstance);
  }

  /** A call begins. */
  begin(ownerId: string): void {
    this.#carried += 1;
    this.#requests += 1;
    this.#workingBy.take(ownerId);
  }

  /**
   * A call has ended; one that rested has gone on before. `hasReturned`: it has rested. A cancelled call says nothing about the
   * instance; an error answer is an answer.
   */
  end(ownerId: string, { outcome, durationMs }: CountedEnd, hasReturned = false): void {
    this.#carried -= 1;
    if (hasReturned) this.#returned -= 1;
    this.#workingBy.giveBack(ownerId);
    if (outcome === 'cancelled') return;
    if (outcome !== 'result') this.#errors += 1;
    const isAnswered = outcome !== 'failed';
    this.#judge(isAnswered, isAnswered ? durationMs : undefined);
  }

  /** A probe, or an opening, has ended. `durationMs`: time to its answer; undefined when there was none to measure. */
  probed(hasPassed: boolean, durationMs?: number): void {
    this.#judge(hasPassed, durationMs);
  }

  /**
   * A call waits for its client. False when it may not: LIMITS.parkedCalls do already, or its owner's share of them.
   * `hasReturned`: it has rested before.
   */
  rest(ownerId: string, hasReturned = false): boolean {
    if (this.#resting >= LIMITS.parkedCalls || this.#restingBy.isFull(ownerId)) return false;
    this.#resting += 1;
    if (hasReturned) this.#returned -= 1;
    this.#restingBy.take(ownerId);
    this.#workingBy.giveBack(ownerId);
    return true;
  }

  /** The call goes on, with or without room: its backend works on it already. */
  goOn(ownerId: string): void {
    this.#resting -= 1;
    this.#returned += 1;
    this.#restingBy.giveBack(ownerId);
    this.#workingBy.take(ownerId);
  }

  /** Why no further reservation is possible for this owner: LIMITS.parkedCalls, or its share of them. */
  reservationRefusal(ownerId: string): GatewayError | undefined {
    if (this.#reservedBy.isFull(ownerId)) return parkedShareLimit(this.#reservedBy.share);
    return this.#reserved >= LIMITS.parkedCalls ? parkedCallsFull(LIMITS.parkedCalls) : undefined;
  }

  /** A call is between two rounds from now on. */
  reserve(ownerId: string): void {
    this.#reserved += 1;
    this.#reservedBy.take(ownerId);
  }

  /** It is no more. */
  cancelReservation(ownerId: string): void {
    this.#reserved -= 1;
    this.#reservedBy.giveBack(ownerId);
  }

  #judge(hasAnswered: boolean, durationMs: number | undefined): void {
    this.#successRate = ewma(this.#successRate, hasAnswered ? 1 : 0);
    if (durationMs !== undefined) this.#latencyMs = ewma(this.#latencyMs, durationMs);
  }
}
