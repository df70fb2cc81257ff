// The queue of calls that found all instances of their template full or still starting, bounded in length and time. A
// search for a binding waits for a start in the same way.
// Owners take turns; the calls of one owner are served in order of arrival. The queue decides which call tries next, not
// at which instance. Each call is served in its own task of the scheduler, since an instance that fails or returns may
// concern thousands of calls. Source: ADR 41, ADR 102, ADR 113.

import { countedIdOf } from '../../domain/accounts/principal.ts';
import { isWithinEqualPart } from '../../domain/memory/user-shares.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';

/** Longest wait in that queue. After it: 429 QUEUE_FULL. */
export const QUEUE_WAIT_MS = 5_000;

/** The part of an instance that the queue sees. */
export type QueueTarget = Pick<InstanceRef, 'id' | 'hasCapacityFor' | 'isBelowShare'>;

/** What the queue sees of a call that waits, or of a search that waits for an instance to start. */
export interface QueueEntry {
  readonly ownerId: string;
  /** Increases from call to call, in order of arrival. */
  readonly number: number;
  /** Cancels the timeout of the call's wait. Only the queue sets and calls it; undefined while the call does not wait. */
  endWait?: (() => void) | undefined;
  /** True when the call can use capacity of that instance. */
  mayTake(target: QueueTarget): boolean;
  /**
   * Tries to take capacity, which may be free now. Returns true when the call took it and left the queue; otherwise
   * the call keeps its position, or has left the queue to wait for something else.
   */
  tryNow(): boolean;
  /** Called when the call cannot wait any longer: ends it with an error. */
  refuse(): void;
}

/** A call under way that gives its capacity up as soon as another call waits for it. */
export interface YieldingCall {
  /** The instance whose capacity it uses; undefined when it uses none. */
  readonly target: QueueTarget | undefined;
  yield(): void;
}

/** The queue of one template: its waiting calls by owner, served in turn. Source: ADR 41. */
export class WaitQueue {
  readonly #timing: Timing;
  readonly #waitMs: number;
  /** The waiting calls of each owner in order of arrival; the owners, as `countedIdOf`, in order of service. */
  readonly #byOwner = new Map<string, QueueEntry[]>();
  readonly #yielding = new Set<YieldingCall>();
  /** Instances that may have capacity for a waiting call. */
  readonly #due = new Set<QueueTarget>();
  /** Calls that try again because the available instances have changed; the next one is at the end. */
  #changed: QueueEntry[] = [];
  #length = 0;
  /** True while a task is scheduled or runs. */
  #isBusy = false;

  /** `waitMs`: the longest wait of a call, in ms. `Infinity`: until the call itself leaves. */
  constructor(timing: Timing, waitMs = QUEUE_WAIT_MS) {
    this.#timing = timing;
    this.#waitMs = waitMs;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Adds the call for at most `waitMs`. When `maxLength` calls wait already, an owner within an equal part of the
   * queue displaces the newest call of the owner with most calls; for other owners the queue returns false and does
   * not take the call.
   */
  join(call: QueueEntry, maxLength: number): boolean {
    const ownerId = countedIdOf(call.ownerId);
    const displaced = this.#length < maxLength ? undefined : this.#displacedBy(ownerId, maxLength);
    if (this.#length >= maxLength && displaced === undefined) return false;
    const refuse = () => this.#refuse(call);
    const isEndless = this.#waitMs === Number.POSITIVE_INFINITY;
    call.endWait = isEndless ? () => undefined : this.#timing.clock.alarm(this.#waitMs, refuse);
    const calls = this.#byOwner.get(ownerId) ?? [];
    calls.splice(indexIn(call, calls), 0, call);
    this.#byOwner.set(ownerId, calls);
    this.#length += 1;
    if (displaced !== undefined) this.#refuse(displaced); // its caller may move the queue
    for (const { target } of this.#yielding)
      if (target !== undefined && call.mayTake(target)) this.advance(target);
    return true;
  }

  /** Removes the call. Without effect when it does not wait. */
  leave(call: QueueEntry): void {
    const { endWait } = call;
    if (endWait === undefined) return;
    endWait();
    call.endWait = undefined;
    this.#length -= 1;
    const ownerId = countedIdOf(call.ownerId);
    const calls = this.#byOwner.get(ownerId) ?? [];
    calls.splice(indexIn(call, calls), 1);
    if (calls.length === 0) this.#byOwner.delete(ownerId);
  }

  has(call: QueueEntry): boolean {
    return call.endWait !== undefined;
  }

  /**
   * Reports free capacity at an instance: waiting calls that can use it take it, those of owners below their share
   * first, each in its own task.
   */
  advance(target: QueueTarget): void {
    if (this.#length === 0) return;
    this.#due.add(target);
    this.#schedule();
  }

  /**
   * True when free capacity of that instance is about to go to waiting calls: a new call must not be
   * sent before them.
   */
  isDue(target: QueueTarget): boolean {
    return this.#length > 0 && this.#due.has(target);
  }

  /**
   * Lets all waiting calls try again, because the available instances have changed. Calls without an instance to wait
   * for end.
   */
  reconsider(): void {
    this.#changed = [...this.#byOwner.values()].flat().reverse();
    this.#schedule();
  }

  /** Lets each waiting call try for the last time, at the end of the gateway. Resolves when all have. */
  close(): Promise<void> {
    const calls = [...this.#byOwner.values()].flat();
    return this.#timing.scheduler.each(calls, (call) => {
      if (this.has(call)) call.tryNow();
    });
  }

  /** Registers a call that yields its capacity as soon as another call waits for it. */
  addYielding(call: YieldingCall): void {
    const { target } = call;
    this.#yielding.add(call);
    if (target !== undefined) this.advance(target);
  }

  removeYielding(call: YieldingCall): void {
    this.#yielding.delete(call);
  }

  #refuse(call: QueueEntry): void {
    this.leave(call);
    call.refuse();
  }

  #schedule(): void {
    if (this.#isBusy || (this.#due.size === 0 && this.#changed.length === 0)) return;
    this.#isBusy = true;
    this.#timing.scheduler.run(this.#step);
  }

  /**
   * Serves one call. What becomes due meanwhile waits for the next task: calls that end as soon as they begin would
   * otherwise nest ever deeper.
   */
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
    if (this.#serve(target, true) || this.#serve(target, false) || this.#endYielding(target)) return;
    this.#due.delete(target);
  }

  /**
   * Lets the first suitable call try to take capacity. Returns true when a call left the queue, or began to wait for
   * something else: others may then use the capacity.
   */
  #serve(target: QueueTarget, isBelowShare: boolean): boolean {
    for (const [ownerId, calls] of this.#byOwner) {
      if (!target.hasCapacityFor(ownerId) || target.isBelowShare(ownerId) !== isBelowShare) continue;
      const call = calls.find((waiting) => waiting.mayTake(target));
      if (call === undefined) continue;
      const isTaken = call.tryNow();
      if (this.has(call) && call.mayTake(target)) continue; // no room after all, nor for later calls of this owner
      if (isTaken) this.#putLast(ownerId);
      return true;
    }
    return false;
  }

  #putLast(ownerId: string): void {
    const rest = this.#byOwner.get(ownerId);
    if (this.#byOwner.delete(ownerId) && rest !== undefined) this.#byOwner.set(ownerId, rest);
  }

  /**
   * Ends one call that yields its capacity at this instance, if another one waits for it. Returns true when one was
   * ended.
   */
  #endYielding(target: QueueTarget): boolean {
    for (const yielding of this.#yielding) {
      if (yielding.target !== target) continue;
      if (!this.#isAwaited(target)) return false;
      this.#yielding.delete(yielding);
      yielding.yield();
      return true;
    }
    return false;
  }

  #isAwaited(target: QueueTarget): boolean {
    for (const calls of this.#byOwner.values()) if (calls.some((call) => call.mayTake(target))) return true;
    return false;
  }

  /**
   * The newest call of the owner with most calls, if the new call's owner is within an equal part of the
   * queue; undefined otherwise.
   */
  #displacedBy(ownerId: string, maxLength: number): QueueEntry | undefined {
    const own = this.#byOwner.get(ownerId)?.length ?? 0;
    const owners = this.#byOwner.size + (own === 0 ? 1 : 0);
    if (!isWithinEqualPart(own, owners, maxLength)) return undefined;
    let most: readonly QueueEntry[] = [];
    for (const calls of this.#byOwner.values()) if (calls.length > most.length) most = calls;
    return most.at(-1);
  }
}

/**
 * Finds the position of a call among the waiting calls of its owner by binary search, also before the call has joined
 * them.
 */
function indexIn({ number }: QueueEntry, calls: readonly QueueEntry[]): number {
  let low = 0;
  let high = calls.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((calls[middle]?.number ?? number) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
