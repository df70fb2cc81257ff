// The queue of calls that found all instances of their template full, bounded in length and time. Owners take turns; the calls of
// one owner are served in order of arrival. It decides which call tries next, not at which instance. Source: ADR 41.

import { type Subscription, timer } from 'rxjs';
import { isWithinEqualPart } from '../../domain/held-bytes.ts';
import { LIMITS } from '../../domain/limits.ts';

/** An instance as the queue sees it. */
export interface QueueTarget {
  /** True when a call of this owner may begin there. */
  hasCapacityFor(ownerId: string): boolean;
  /** True when this owner uses less than an equal part of the capacity. */
  isBelowShare(ownerId: string): boolean;
}

export interface QueuedCall {
  readonly ownerId: string;
  /** True when the call can use capacity of that instance. */
  waitsFor(target: QueueTarget): boolean;
  /** Capacity may be free. True when the call took it and left the queue; otherwise the call keeps its position. */
  tryNow(): boolean;
  /** The call cannot wait any longer. */
  refuse(): void;
}

/** A call under way that ends as soon as another one waits for its capacity. */
export interface YieldingCall {
  /** The instance whose capacity it uses; undefined when it uses none. */
  readonly target: QueueTarget | undefined;
  yield(): void;
}

export class WaitQueue {
  /** By owner, in the order of service; each call with its timeout, oldest first. */
  readonly #byOwner = new Map<string, Map<QueuedCall, Subscription>>();
  readonly #yielding = new Set<YieldingCall>();
  #length = 0;
  #isServing = false;
  /** Instances whose capacity became free while a call was served. */
  readonly #freed: QueueTarget[] = [];

  get length(): number {
    return this.#length;
  }

  /**
   * Joins the queue for at most LIMITS.queueWaitMs. When `maxLength` calls wait already, an owner within an equal part of the
   * queue displaces the newest call of the owner that has most calls there; other owners are refused: false.
   */
  join(call: QueuedCall, maxLength: number): boolean {
    const displaced = this.#length < maxLength ? undefined : this.#displacedBy(call.ownerId, maxLength);
    if (this.#length >= maxLength && displaced === undefined) return false;
    const timeout = timer(LIMITS.queueWaitMs).subscribe(() => this.#refuse(call));
    const calls = this.#byOwner.get(call.ownerId) ?? new Map<QueuedCall, Subscription>();
    this.#byOwner.set(call.ownerId, calls.set(call, timeout));
    this.#length += 1;
    if (displaced !== undefined) this.#refuse(displaced); // last: its caller may move the queue
    return true;
  }

  /** No effect for a call that does not wait. */
  leave(call: QueuedCall): void {
    const calls = this.#byOwner.get(call.ownerId);
    const timeout = calls?.get(call);
    if (calls === undefined || timeout === undefined) return;
    timeout.unsubscribe();
    calls.delete(call);
    this.#length -= 1;
    if (calls.size === 0) this.#byOwner.delete(call.ownerId);
  }

  has(call: QueuedCall): boolean {
    return this.#byOwner.get(call.ownerId)?.has(call) === true;
  }

  /**
   * Capacity became free: the first call that can use it takes it. Owners below their share come first. False when no call could
   * use it. While a call is served, other instances wait: calls that end as they begin would otherwise nest ever deeper.
   */
  advance(target: QueueTarget): boolean {
    if (this.#length === 0) return false;
    if (this.#isServing) return this.#freed.push(target) > 0;
    this.#isServing = true;
    try {
      const isTaken = this.#serveFirst(target);
      for (const freed of this.#freed) this.#serveFirst(freed); // more may be added meanwhile
      return isTaken;
    } finally {
      this.#freed.length = 0;
      this.#isServing = false;
    }
  }

  /** The available instances have changed: all calls try again, and those without an instance to wait for end. */
  reconsider(): void {
    for (const call of this.#waiting) if (this.has(call)) call.tryNow();
  }

  /** From now on this call ends as soon as another one waits for its capacity. */
  offer(call: YieldingCall): void {
    const { target } = call;
    this.#yielding.add(call);
    if (target !== undefined && this.#waiting.some((waiting) => waiting.waitsFor(target))) this.#take(call);
  }

  withdraw(call: YieldingCall): void {
    this.#yielding.delete(call);
  }

  /** Ends offered calls until this waiting call is served. */
  claim(call: QueuedCall): void {
    for (const offered of this.#yielding) {
      if (!this.has(call)) return;
      if (offered.target !== undefined && call.waitsFor(offered.target)) this.#take(offered);
    }
  }

  get #waiting(): QueuedCall[] {
    return [...this.#byOwner.values()].flatMap((calls) => [...calls.keys()]);
  }

  #refuse(call: QueuedCall): void {
    this.leave(call);
    call.refuse();
  }

  #serveFirst(target: QueueTarget): boolean {
    return this.#serve(target, true) || this.#serve(target, false);
  }

  #serve(target: QueueTarget, isBelowShare: boolean): boolean {
    for (const [ownerId, calls] of this.#byOwner) {
      if (!target.hasCapacityFor(ownerId) || target.isBelowShare(ownerId) !== isBelowShare) continue;
      for (const call of calls.keys()) {
        if (!call.waitsFor(target) || !call.tryNow()) continue;
        const rest = this.#byOwner.get(ownerId);
        if (this.#byOwner.delete(ownerId) && rest !== undefined) this.#byOwner.set(ownerId, rest); // its turn is over
        return true;
      }
    }
    return false;
  }

  /** The newest call of the owner that has most calls: at least two more than the owner of the new call. */
  #displacedBy(ownerId: string, maxLength: number): QueuedCall | undefined {
    const own = this.#byOwner.get(ownerId)?.size ?? 0;
    const owners = this.#byOwner.size + (own === 0 ? 1 : 0);
    if (!isWithinEqualPart(own, owners, maxLength)) return undefined;
    let most: Map<QueuedCall, Subscription> | undefined;
    for (const calls of this.#byOwner.values()) if (calls.size > (most?.size ?? 0)) most = calls;
    return [...(most?.keys() ?? [])].at(-1);
  }

  #take(call: YieldingCall): void {
    this.#yielding.delete(call);
    call.yield();
  }
}
