// The queue of calls that found all instances of their template full, or still starting, bounded in length and
// time. Owners take turns; the calls of one owner are served in order of arrival. It decides which call tries
// next, not at which instance. Each call is served in its own task of the scheduler: an instance that falls, or
// returns, may concern thousands. Source: ADR 41, ADR 102, ADR 113.

import { LIMITS } from '../../domain/limits.ts';
import { isWithinEqualPart } from '../../domain/memory/owner-shares.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';

/** An instance as the queue sees it. */
export interface QueueTarget {
  readonly id: string;
  /** True when a call of this owner may begin there. */
  hasCapacityFor(ownerId: string): boolean;
  /** True when this owner uses less than an equal part of the capacity. */
  isBelowShare(ownerId: string): boolean;
}

/** A call as the queue sees it. */
export interface QueuedCall {
  readonly ownerId: string;
  /** Increases from call to call, in order of arrival. */
  readonly number: number;
  /** Cancels the timeout of its wait. Only the queue uses it; set while the call waits. */
  endWait?: (() => void) | undefined;
  /** True when the call can use capacity of that instance. */
  waitsFor(target: QueueTarget): boolean;
  /**
   * Capacity may be free. True when the call took it and left the queue; otherwise the call keeps its position, or
   * left to wait elsewhere.
   */
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

interface WaitQueueDeps {
  readonly alarm: Clock['alarm'];
  readonly scheduler: Pick<TaskScheduler, 'run' | 'each'>;
  /** Longest wait of a call, in ms. Default LIMITS.queueWaitMs; `Infinity`: until the call itself leaves. */
  readonly waitMs?: number;
}

/** The calls of one template that wait for capacity, by owner; owners are served in turn. Source: ADR 41. */
export class WaitQueue {
  readonly #deps: WaitQueueDeps;
  /** By owner, in the order of service; the calls of an owner in order of arrival. */
  readonly #byOwner = new Map<string, QueuedCall[]>();
  readonly #yielding = new Set<YieldingCall>();
  /** Instances that may have room for a waiting call. */
  readonly #due = new Set<QueueTarget>();
  /** Calls that try again, because the available instances have changed; the next one is the last. */
  #changed: QueuedCall[] = [];
  #length = 0;
  /** A task is under way, or scheduled. */
  #isBusy = false;

  constructor(deps: WaitQueueDeps) {
    this.#deps = deps;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Joins the queue for at most `waitMs`. When `maxLength` calls wait already, an owner within an equal part of the
   * queue displaces the newest call of the owner that has most calls there; other owners are refused: false.
   */
  join(call: QueuedCall, maxLength: number): boolean {
    const displaced = this.#length < maxLength ? undefined : this.#displacedBy(call.ownerId, maxLength);
    if (this.#length >= maxLength && displaced === undefined) return false;
    const { alarm, waitMs = LIMITS.queueWaitMs } = this.#deps;
    call.endWait =
      waitMs === Number.POSITIVE_INFINITY ? () => undefined : alarm(waitMs, () => this.#refuse(call));
    const calls = this.#byOwner.get(call.ownerId) ?? [];
    calls.splice(placeOf(call, calls), 0, call);
    this.#byOwner.set(call.ownerId, calls);
    this.#length += 1;
    if (displaced !== undefined) this.#refuse(displaced); // its caller may move the queue
    for (const { target } of this.#yielding)
      if (target !== undefined && call.waitsFor(target)) this.advance(target);
    return true;
  }

  /** No effect for a call that does not wait. */
  leave(call: QueuedCall): void {
    const { endWait } = call;
    if (endWait === undefined) return;
    endWait();
    call.endWait = undefined;
    this.#length -= 1;
    const calls = this.#byOwner.get(call.ownerId) ?? [];
    calls.splice(placeOf(call, calls), 1);
    if (calls.length === 0) this.#byOwner.delete(call.ownerId);
  }

  has(call: QueuedCall): boolean {
    return call.endWait !== undefined;
  }

  /** Capacity became free: the calls that can use it take it, owners below their share first, each in its own task. */
  advance(target: QueueTarget): void {
    if (this.#length === 0) return;
    this.#due.add(target);
    this.#schedule();
  }

  /** True when free capacity of that instance will be offered to the calls that wait: a new call must not be sent before them. */
  isDue(target: QueueTarget): boolean {
    return this.#length > 0 && this.#due.has(target);
  }

  /** The available instances have changed: all calls try again, and those without an instance to wait for end. */
  reconsider(): void {
    this.#changed = [...this.#byOwner.values()].flat().reverse();
    this.#schedule();
  }

  /** For the end of the gateway: every call that waits tries for the last time. Resolves when they have. */
  close(): Promise<void> {
    const calls = [...this.#byOwner.values()].flat();
    return this.#deps.scheduler.each(calls, (call) => {
      if (this.has(call)) call.tryNow();
    });
  }

  /** From now on this call ends as soon as another one waits for its capacity. */
  offer(call: YieldingCall): void {
    const { target } = call;
    this.#yielding.add(call);
    if (target !== undefined) this.advance(target);
  }

  withdraw(call: YieldingCall): void {
    this.#yielding.delete(call);
  }

  #refuse(call: QueuedCall): void {
    this.leave(call);
    call.refuse();
  }

  #schedule(): void {
    if (this.#isBusy || (this.#due.size === 0 && this.#changed.length === 0)) return;
    this.#isBusy = true;
    this.#deps.scheduler.run(this.#step);
  }

  /** What becomes due meanwhile waits for the next step: calls that end as they begin would otherwise nest ever deeper. */
  readonly #step = (): void => {
    try {
      const changed = this.#changed.pop();
      if (changed === undefined) this.#serveNext();
      else if (this.has(changed)) changed.tryNow();
    } finally {
      this.#isBusy = false;
      this.#schedule();
    }
  };

  #serveNext(): void {
    if (this.#length === 0) this.#due.clear();
    const [target] = this.#due;
    if (target === undefined) return;
    if (this.#serve(target, true) || this.#serve(target, false) || this.#takeOffered(target)) return;
    this.#due.delete(target);
  }

  /** True when a call left the queue, or began to wait for something else: others may use the capacity. */
  #serve(target: QueueTarget, isBelowShare: boolean): boolean {
    for (const [ownerId, calls] of this.#byOwner) {
      if (!target.hasCapacityFor(ownerId) || target.isBelowShare(ownerId) !== isBelowShare) continue;
      const call = calls.find((waiting) => waiting.waitsFor(target));
      if (call === undefined) continue;
      const isTaken = call.tryNow();
      if (this.has(call) && call.waitsFor(target)) continue; // no room after all, nor for later calls of this owner
      if (isTaken) this.#endTurn(ownerId);
      return true;
    }
    return false;
  }

  #endTurn(ownerId: string): void {
    const rest = this.#byOwner.get(ownerId);
    if (this.#byOwner.delete(ownerId) && rest !== undefined) this.#byOwner.set(ownerId, rest);
  }

  /** Ends one call that offers its capacity at that instance, if another one waits for it. */
  #takeOffered(target: QueueTarget): boolean {
    for (const offered of this.#yielding) {
      if (offered.target !== target) continue;
      if (!this.#isAwaited(target)) return false;
      this.#yielding.delete(offered);
      offered.yield();
      return true;
    }
    return false;
  }

  #isAwaited(target: QueueTarget): boolean {
    for (const calls of this.#byOwner.values()) if (calls.some((call) => call.waitsFor(target))) return true;
    return false;
  }

  /** The newest call of the owner that has most calls: at least two more than the owner of the new call. */
  #displacedBy(ownerId: string, maxLength: number): QueuedCall | undefined {
    const own = this.#byOwner.get(ownerId)?.length ?? 0;
    const owners = this.#byOwner.size + (own === 0 ? 1 : 0);
    if (!isWithinEqualPart(own, owners, maxLength)) return undefined;
    let most: readonly QueuedCall[] = [];
    for (const calls of this.#byOwner.values()) if (calls.length > most.length) most = calls;
    return most.at(-1);
  }
}

/** The position of a call among the calls of its owner, also before it has joined them: by binary search. */
function placeOf({ number }: QueuedCall, calls: readonly QueuedCall[]): number {
  let low = 0;
  let high = calls.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((calls[middle]?.number ?? number) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
