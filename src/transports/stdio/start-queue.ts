// A semaphore for opening conversations with one instance: it bounds how many are opened at a time, in all and per owner. A free
// slot goes to the owner with the fewest openings, so that openings that hang hardly delay other owners.

import { ANONYMOUS } from '../../domain/account.ts';
import { alarmOf } from '../../domain/clock.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';

export interface StartQueueOptions {
  readonly atOnce: number;
  /** Openings of one owner at the same time; ANONYMOUS, the owner of all callers without authentication, may use all slots. */
  readonly atOncePerOwner: number;
  readonly maxWaitMs: number;
  /** Runs starts and timeouts that come due together. */
  readonly scheduler: TaskScheduler;
}

export interface QueuedOpening<T> {
  readonly ownerId: string;
  /** Ends the wait with its reason. Default: only `maxWaitMs` does. */
  readonly signal?: AbortSignal;
  readonly start: () => Promise<T>;
}

interface Share {
  starting: number;
  /** Each is called when the opening may start, or with the error that ends the wait. */
  readonly waiting: Set<(refusal?: unknown) => void>;
}

/** The openings of one owner are in order. The caller bounds the total number that wait. */
export class StartQueue {
  readonly #options: StartQueueOptions;
  /** Owners that start or wait; the owner whose last start is longest ago is first. */
  readonly #shares = new Map<string, Share>();
  #starting = 0;
  #waiting = 0;
  #isPassingOn = false;

  constructor(options: StartQueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get starting(): number {
    return this.#starting;
  }

  get owners(): number {
    return this.#shares.size;
  }

  /**
   * Runs `start` as soon as there is a slot, and settles as it does. Rejects with the reason of `signal` when that aborts before, and
   * with BACKEND_UNAVAILABLE, `delivered: 'no'`, when the wait gets too long.
   */
  async take<T>({ ownerId, signal, start }: QueuedOpening<T>): Promise<T> {
    const share = this.#shares.get(ownerId) ?? { starting: 0, waiting: new Set() };
    const isFree = this.#starting < this.#options.atOnce && !this.#isPassingOn;
    if (isFree && this.#mayStart(ownerId, share)) this.#enter(ownerId, share);
    else await this.#wait(ownerId, share, signal);
    try {
      return await start();
    } finally {
      this.#leave(ownerId, share);
    }
  }

  #mayStart(ownerId: string, { starting }: Share): boolean {
    return ownerId === ANONYMOUS.id || starting < this.#options.atOncePerOwner;
  }

  #enter(ownerId: string, share: Share): void {
    this.#starting += 1;
    share.starting += 1;
    this.#shares.delete(ownerId);
    this.#shares.set(ownerId, share);
  }

  #leave(ownerId: string, share: Share): void {
    this.#starting -= 1;
    share.starting -= 1;
    this.#forgetIdle(ownerId, share);
    if (this.waiting > 0) this.#passOn();
  }

  /**
   * Passes free slots on, later in the event loop: after the timers that are due, because a slot must not go to an opening
   * whose wait ends in the same turn. Until then no new opening can take a slot.
   */
  #passOn(): void {
    if (this.#isPassingOn) return;
    this.#isPassingOn = true;
    setImmediate(this.#options.scheduler.run, this.#startWaiting);
  }

  readonly #startWaiting = (): void => {
    const { atOnce, scheduler } = this.#options;
    if (this.#starting < atOnce && this.#startNext()) scheduler.run(this.#startWaiting);
    else this.#isPassingOn = false;
  };

  #startNext(): boolean {
    const next = this.#nextOwner();
    if (next === undefined) return false;
    const [ownerId, share] = next;
    const [go] = share.waiting;
    this.#enter(ownerId, share);
    go?.();
    return true;
  }

  /** The waiting owner with the fewest openings that may start; of several the one whose last start is longest ago. */
  #nextOwner(): [string, Share] | undefined {
    let next: [string, Share] | undefined;
    for (const [ownerId, share] of this.#shares) {
      if (share.waiting.size === 0 || !this.#mayStart(ownerId, share)) continue;
      if (next === undefined || share.starting < next[1].starting) next = [ownerId, share];
      if (share.starting === 0) break;
    }
    return next;
  }

  async #wait(ownerId: string, share: Share, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaitMs, scheduler } = this.#options;
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const go = (refusal?: unknown): void => {
      cancelTimeout();
      signal?.removeEventListener('abort', stop);
      share.waiting.delete(go);
      this.#waiting -= 1;
      this.#forgetIdle(ownerId, share);
      if (refusal === undefined) resolve();
      else reject(refusal);
    };
    const stop = (): void => go(signal?.reason);
    const giveUp = (): void =>
      go(backendUnavailable('too many conversations with it were being opened', { delivered: 'no' }));
    const cancelTimeout = alarmOf(scheduler)(maxWaitMs, giveUp);
    signal?.addEventListener('abort', stop);
    share.waiting.add(go);
    this.#waiting += 1;
    this.#shares.set(ownerId, share);
    return promise;
  }

  #forgetIdle(ownerId: string, { starting, waiting }: Share): void {
    if (starting === 0 && waiting.size === 0) this.#shares.delete(ownerId);
  }
}
