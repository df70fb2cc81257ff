// The queue of conversations that are being opened with one instance: so many at a time, and each owner no more than a part of
// them. A free place goes to the owner with the fewest, so that openings that hang delay their owner and hardly any other
// one. The caller does the opening.

import { ANONYMOUS } from '../../domain/account.ts';
import { backendUnavailable, openingShareLimit } from '../../domain/error-catalogue.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';

export interface StartQueueOptions {
  /** How many may be starting at the same time. */
  readonly atOnce: number;
  /** Openings of one owner at the same time. While authentication is off all callers are one owner, which may use all places. */
  readonly atOncePerOwner: number;
  /** Openings of one owner that may wait; the same exception. Default: no limit. */
  readonly waitingPerOwner?: number;
  /** Longest wait, in ms. */
  readonly maxWaitMs: number;
  /** An opening that has not finished after so many ms does not count any more: the next one begins. Default: it counts. */
  readonly heldMs?: number;
  /** Runs starts and timeouts when many come together. Default: one of its own. */
  readonly scheduler?: TaskScheduler | undefined;
}

/** One opening in the queue, and its owner. */
export interface Turn<T> {
  readonly ownerId: string;
  /** Ends the wait, with its reason. Default: nothing ends it before its time. */
  readonly signal?: AbortSignal;
  readonly start: () => Promise<T>;
}

/** The openings of one owner. */
interface Share {
  starting: number;
  /** Each is called when its turn has come, or with the error that ends the wait. */
  readonly waiting: Set<(refusal?: unknown) => void>;
}

/** First come, first served among the openings of one owner. The caller bounds the total number that wait. */
export class StartQueue {
  readonly #options: StartQueueOptions;
  readonly #scheduler: TaskScheduler;
  /** Owners that start or wait, those with the longest time since their last turn first. */
  readonly #shares = new Map<string, Share>();
  #starting = 0;
  #waiting = 0;
  #isPassingOn = false;

  constructor(options: StartQueueOptions) {
    this.#options = options;
    this.#scheduler = options.scheduler ?? new TaskScheduler();
  }

  /** The number of openings that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The number of openings that have begun and not settled, nor used up their time. */
  get starting(): number {
    return this.#starting;
  }

  /** Owners that start or wait; for specs that look for leaks. */
  get owners(): number {
    return this.#shares.size;
  }

  /**
   * Runs `start` when it is its turn, at once if there is a place, and settles as it does. Rejects with the reason of
   * `signal` when that aborts before; with BACKEND_UNAVAILABLE, `delivered: 'no'`, when the wait gets too long; with
   * QUEUE_FULL when too many of that owner wait.
   */
  async take<T>({ ownerId, signal, start }: Turn<T>): Promise<T> {
    const share = this.#shares.get(ownerId) ?? { starting: 0, waiting: new Set() };
    const isFree = this.#starting < this.#options.atOnce && !this.#isPassingOn;
    if (isFree && this.#mayStart(ownerId, share)) this.#enter(ownerId, share);
    else await this.#wait(ownerId, share, signal);
    const leave = this.#place(ownerId, share);
    try {
      return await start();
    } finally {
      leave();
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

  /** Takes a place for an opening; the returned function gives it back, or the end of `heldMs` does. */
  #place(ownerId: string, share: Share): () => void {
    let isHeld = true;
    const leave = (): void => {
      clearTimeout(timer);
      if (!isHeld) return;
      isHeld = false;
      this.#starting -= 1;
      share.starting -= 1;
      this.#tidy(ownerId, share);
      if (this.waiting > 0) this.#passOn();
    };
    const { heldMs } = this.#options;
    const timer = heldMs === undefined ? undefined : setTimeout(leave, heldMs);
    return leave;
  }

  /**
   * Later in the event loop, after the timers that are due: many places become free together, and none of them is to go to an
   * opening whose wait is over, too. No other opening can come in between.
   */
  #passOn(): void {
    if (this.#isPassingOn) return;
    this.#isPassingOn = true;
    setImmediate(this.#scheduler.run, this.#letNextIn);
  }

  readonly #letNextIn = (): void => {
    if (this.#starting < this.#options.atOnce && this.#letIn()) this.#scheduler.run(this.#letNextIn);
    else this.#isPassingOn = false;
  };

  /** False when no waiting opening may start. */
  #letIn(): boolean {
    const next = this.#next();
    if (next === undefined) return false;
    const [ownerId, share] = next;
    const [go] = share.waiting;
    this.#enter(ownerId, share);
    go?.();
    return true;
  }

  /** The owner with the fewest openings that waits and may start; of several the one with the longest time since its last turn. */
  #next(): [string, Share] | undefined {
    let next: [string, Share] | undefined;
    for (const [ownerId, share] of this.#shares) {
      if (share.waiting.size === 0 || !this.#mayStart(ownerId, share)) continue;
      if (next === undefined || share.starting < next[1].starting) next = [ownerId, share];
      if (share.starting === 0) break;
    }
    return next;
  }

  async #wait(ownerId: string, share: Share, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaitMs, waitingPerOwner = Number.POSITIVE_INFINITY } = this.#options;
    signal?.throwIfAborted();
    if (ownerId !== ANONYMOUS.id && share.waiting.size >= waitingPerOwner)
      throw openingShareLimit(waitingPerOwner);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const go = (refusal?: unknown): void => {
      clearTimeout(timer);
      this.#scheduler.forget(giveUp);
      signal?.removeEventListener('abort', stop);
      share.waiting.delete(go);
      this.#waiting -= 1;
      this.#tidy(ownerId, share);
      if (refusal === undefined) resolve();
      else reject(refusal);
    };
    const stop = (): void => go(signal?.reason);
    const giveUp = (): void =>
      go(backendUnavailable('too many conversations with it were being opened', { delivered: 'no' }));
    const timer = setTimeout(this.#scheduler.run, maxWaitMs, giveUp);
    signal?.addEventListener('abort', stop);
    share.waiting.add(go);
    this.#waiting += 1;
    this.#shares.set(ownerId, share);
    return promise;
  }

  #tidy(ownerId: string, { starting, waiting }: Share): void {
    if (starting === 0 && waiting.size === 0) this.#shares.delete(ownerId);
  }
}
