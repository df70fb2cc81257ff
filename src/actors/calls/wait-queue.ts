// The queue of the calls of one template that found every instance full. Owners take turns; the calls of one owner are
// served in order of arrival. Bounded in length and in time. It chooses no instance: it only says which call tries next.
// Source: ADR 41.

import { type Subscription, timer } from 'rxjs';
import { LIMITS } from '../../domain/limits.ts';
import { isWithinEqualPart } from '../instances/owner-shares.ts';

/** An instance as the queue sees it. */
export interface QueuedPlace {
  /** True when a call of this owner may begin there. */
  hasPlaceFor(ownerId: string): boolean;
  /** True when this owner has less than an equal part of its places. */
  isBelowShare(ownerId: string): boolean;
}

/** A call that waits. */
export interface QueuedCall {
  readonly ownerId: string;
  /** True when the call can use a place of that instance. */
  waitsFor(place: QueuedPlace): boolean;
  /** A place may be free. Returns whether the call took one; a call that took one has left the queue, others keep their turn. */
  go(): boolean;
  /** The call has left the queue in vain. */
  giveUp(): void;
}

/** A call under way that ends as soon as another one waits for its place. */
export interface YieldingCall {
  /** The instance of its place; undefined without a place. */
  readonly place: QueuedPlace | undefined;
  yield(): void;
}

export class WaitQueue {
  /** By owner, the next one to be served first; a call with its timeout, the oldest first. */
  readonly #byOwner = new Map<string, Map<QueuedCall, Subscription>>();
  readonly #yielding = new Set<YieldingCall>();
  #length = 0;
  #isServing = false;
  /** Places that became free while a call was served. */
  readonly #freed: QueuedPlace[] = [];

  get length(): number {
    return this.#length;
  }

  /**
   * Joins the queue for at most LIMITS.queueWaitMs. When `longest` wait already, an owner within an equal part of the queue
   * takes the turn of the newest call of the owner that has most calls there; other owners are refused: false.
   */
  join(call: QueuedCall, longest: number): boolean {
    const displaced = this.#length < longest ? undefined : this.#displacedBy(call.ownerId, longest);
    if (this.#length >= longest && displaced === undefined) return false;
    this.#add(call);
    if (displaced !== undefined) this.#refuse(displaced); // last: what its caller does then may move the queue
    return true;
  }

  /** Ignored for a call that does not wait. */
  leave(call: QueuedCall): void {
    const calls = this.#byOwner.get(call.ownerId);
    const timeout = calls?.get(call);
    if (calls === undefined || timeout === undefined) return;
    timeout.unsubscribe();
    calls.delete(call);
    this.#length -= 1;
    if (calls.size === 0) this.#byOwner.delete(call.ownerId);
  }

  /**
   * A place became free there: the first call that can use it takes it. Owners below their share come before all others.
   * False when no call could use it. While another call is served it waits for its turn: calls that end as they begin would
   * otherwise serve each other ever deeper in the stack.
   */
  advance(place: QueuedPlace): boolean {
    if (this.#length === 0) return false;
    if (this.#isServing) return this.#freed.push(place) > 0;
    this.#isServing = true;
    try {
      const isTaken = this.#serveFirst(place);
      for (const freed of this.#freed) this.#serveFirst(freed); // it may grow meanwhile
      return isTaken;
    } finally {
      this.#freed.length = 0;
      this.#isServing = false;
    }
  }

  /** The instances that can serve have changed: all calls try, and those that have none to wait for learn it. */
  reconsider(): void {
    const waiting = [...this.#byOwner.values()].flatMap((calls) => [...calls.keys()]);
    for (const call of waiting) {
      if (this.#has(call)) call.go();
    }
  }

  /** From now on this call ends when another one waits for its place, or at once if one does. */
  offer(call: YieldingCall): void {
    this.#yielding.add(call);
    if (this.#isWaitedFor(call.place)) this.#take(call);
  }

  /** Takes an offer back. */
  withdraw(call: YieldingCall): void {
    this.#yielding.delete(call);
  }

  /** Takes offered places until this call, which waits, has one. */
  claim(call: QueuedCall): void {
    for (const offered of this.#yielding) {
      if (!this.#has(call)) return;
      if (offered.place !== undefined && call.waitsFor(offered.place)) this.#take(offered);
    }
  }

  #add(call: QueuedCall): void {
    const timeout = timer(LIMITS.queueWaitMs).subscribe(() => this.#refuse(call));
    const calls = this.#byOwner.get(call.ownerId);
    if (calls === undefined) this.#byOwner.set(call.ownerId, new Map([[call, timeout]]));
    else calls.set(call, timeout);
    this.#length += 1;
  }

  #has(call: QueuedCall): boolean {
    return this.#byOwner.get(call.ownerId)?.has(call) === true;
  }

  #refuse(call: QueuedCall): void {
    this.leave(call);
    call.giveUp();
  }

  #serveFirst(place: QueuedPlace): boolean {
    return this.#serve(place, true) || this.#serve(place, false);
  }

  #serve(place: QueuedPlace, isBelowShare: boolean): boolean {
    for (const [ownerId, calls] of this.#byOwner) {
      if (!place.hasPlaceFor(ownerId) || place.isBelowShare(ownerId) !== isBelowShare) continue;
      for (const call of calls.keys()) {
        if (!call.go()) continue;
        this.#endTurn(ownerId);
        return true;
      }
    }
    return false;
  }

  /** Moves this owner behind all others. */
  #endTurn(ownerId: string): void {
    const calls = this.#byOwner.get(ownerId);
    if (calls === undefined) return;
    this.#byOwner.delete(ownerId);
    this.#byOwner.set(ownerId, calls);
  }

  /** The newest call of the owner that has most of them: it has at least two more than the one that comes. */
  #displacedBy(ownerId: string, longest: number): QueuedCall | undefined {
    const own = this.#byOwner.get(ownerId)?.size ?? 0;
    const owners = this.#byOwner.size + (own === 0 ? 1 : 0);
    if (!isWithinEqualPart(own, owners, longest)) return undefined;
    let most: ReadonlyMap<QueuedCall, unknown> | undefined;
    for (const calls of this.#byOwner.values()) {
      if (most === undefined || calls.size > most.size) most = calls;
    }
    return [...(most?.keys() ?? [])].at(-1);
  }

  #isWaitedFor(place: QueuedPlace | undefined): boolean {
    if (place === undefined) return false;
    for (const calls of this.#byOwner.values()) {
      for (const call of calls.keys()) if (call.waitsFor(place)) return true;
    }
    return false;
  }

  #take(call: YieldingCall): void {
    this.#yielding.delete(call);
    call.yield();
  }
}
