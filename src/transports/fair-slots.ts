// A fair semaphore for openings (of conversations with one instance, or of programs), and for similar work:
// it bounds how many run at a time, in all and per owner. A free slot goes to the owner with the fewest openings,
// so that openings that hang hardly delay other owners.

import { ANONYMOUS, countedIdOf } from '../domain/accounts/account.ts';
import { backendUnavailable, openingCancelled } from '../domain/errors/backend-errors.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';

export interface FairSlotsOptions {
  readonly atOnce: number;
  /** Openings of one owner at the same time; ANONYMOUS, the owner of all callers without authentication, may use all slots. */
  readonly atOncePerOwner: number;
  /** The longest wait for a slot, in ms. Default: until an opening before it ends, or gives up its slot after `maxHoldMs`. */
  readonly maxWaitMs?: number;
  /**
   * The longest time for which an opening keeps its slot, in ms: one that hangs continues without it. Default: until it settles.
   */
  readonly maxHoldMs?: number;
  /** The clock, whose alarms ring over several turns: see spreadClock. */
  readonly clock: Clock;
  /** Runs starts that come due together. */
  readonly scheduler: TaskScheduler;
}

export interface SlotRequest<T> {
  /** Default: ANONYMOUS. */
  readonly ownerId?: string | undefined;
  /** Ends the wait. Default: only `maxWaitMs` does. */
  readonly signal?: AbortSignal;
  readonly start: () => Promise<T>;
}

interface Share {
  starting: number;
  /** Each is called when the opening may start, or with the error that ends the wait. */
  readonly waiting: Set<(refusal?: unknown) => void>;
}

/** The openings of one owner are in order. The caller bounds the total number that wait. */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  /** The owners that start or wait; the owner whose last start is longest ago is first. */
  readonly #shares = new Map<string, Share>();
  /** Slots that are taken, or free and about to be passed on. */
  starting = 0;
  waiting = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  get owners(): number {
    return this.#shares.size;
  }

  /**
   * Runs `start` as soon as there is a slot, and settles as it does. Rejects with BACKEND_UNAVAILABLE,
   * `delivered: 'no'`, when the wait gets too long, and whenever it fails after `signal` was aborted.
   */
  async take<T>({ ownerId: principalId = ANONYMOUS.id, signal, start }: SlotRequest<T>): Promise<T> {
    const ownerId = countedIdOf(principalId);
    if (signal?.aborted) throw openingCancelled();
    const share = this.#shares.get(ownerId) ?? { starting: 0, waiting: new Set() };
    if (this.starting < this.#options.atOnce && this.#mayStart(ownerId, share)) {
      this.starting += 1;
      this.#enter(ownerId, share);
    } else await this.#wait(ownerId, share, signal);
    const leave = this.#leaving(ownerId, share);
    try {
      return await start();
    } catch (thrown) {
      throw signal?.aborted ? openingCancelled(thrown) : thrown;
    } finally {
      leave();
    }
  }

  /** Gives up the slot when it is called, or after `maxHoldMs`. */
  #leaving(ownerId: string, share: Share): () => void {
    const { clock, scheduler, maxHoldMs } = this.#options;
    let isHolding = true;
    const leave = (): void => {
      cancel?.();
      if (!isHolding) return;
      isHolding = false;
      share.starting -= 1;
      this.#forgetIdle(ownerId, share);
      if (this.waiting === 0) this.starting -= 1;
      else scheduler.run(this.#passOn);
    };
    const cancel = maxHoldMs === undefined ? undefined : clock.alarm(maxHoldMs, leave);
    return leave;
  }

  #mayStart(ownerId: string, { starting }: Share): boolean {
    return ownerId === ANONYMOUS.id || starting < this.#options.atOncePerOwner;
  }

  #enter(ownerId: string, share: Share): void {
    share.starting += 1;
    this.#shares.delete(ownerId);
    this.#shares.set(ownerId, share);
  }

  /** Gives a free slot to the next opening. It runs as a task: thousands may end, or fail at once, in one turn. */
  readonly #passOn = (): void => {
    const next = this.#nextOwner();
    if (next === undefined) {
      this.starting -= 1;
      return;
    }
    const [ownerId, share] = next;
    const [go] = share.waiting;
    this.#enter(ownerId, share);
    go?.();
  };

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
    const { maxWaitMs, clock } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const go = (refusal?: unknown): void => {
      cancelTimeout?.();
      signal?.removeEventListener('abort', stop);
      share.waiting.delete(go);
      this.waiting -= 1;
      this.#forgetIdle(ownerId, share);
      if (refusal === undefined) resolve();
      else reject(refusal);
    };
    const stop = (): void => go(openingCancelled());
    const giveUp = (): void =>
      go(backendUnavailable('too many conversations with it were being opened', { delivered: 'no' }));
    const cancelTimeout = maxWaitMs === undefined ? undefined : clock.alarm(maxWaitMs, giveUp);
    signal?.addEventListener('abort', stop);
    share.waiting.add(go);
    this.waiting += 1;
    this.#shares.set(ownerId, share);
    return promise;
  }

  #forgetIdle(ownerId: string, { starting, waiting }: Share): void {
    if (starting === 0 && waiting.size === 0) this.#shares.delete(ownerId);
  }
}
