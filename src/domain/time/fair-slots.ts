// A fair semaphore, such as for openings of conversations with one instance: it bounds how many run at a time, in all and per
// share, which is that of an owner, a template or a server. A free slot goes to the share of which the fewest run, so that work
// that hangs hardly delays others.

import { ANONYMOUS, countedIdOf } from '../accounts/principal.ts';
import { type Clock, spreadAlarm } from './clock.ts';
import type { Timing } from './task-scheduler.ts';

/** `scheduler`: runs starts, and waits that end, over several turns of the event loop when many are due at once. */
export interface FairSlotsOptions extends Timing {
  readonly atOnce: number;
  /** The most of one share that run at a time; that of ANONYMOUS, of all callers without authentication, may use all slots. */
  readonly atOncePerShare: number;
  /** The longest wait for a slot, in ms. Default: until work before it ends, or gives up its slot after `maxHoldMs`. */
  readonly maxWaitMs?: number;
  /**
   * The longest time for which work keeps its slot, in ms: what hangs continues without it. Default: until it settles.
   */
  readonly maxHoldMs?: number;
  /** The error of work that waited for too long, or was aborted; `cause`: its failure after that. Default: an Error. */
  readonly refusal?: (why: 'late' | 'aborted', cause?: unknown) => Error;
}

interface SlotRequest<T> {
  /** The id of an owner, of which `countedIdOf` counts; the name of a template; both; or an issuer. Default: ANONYMOUS. */
  readonly shareId?: string | undefined;
  /** Ends the wait. Default: only `maxWaitMs` does. */
  readonly signal?: AbortSignal | undefined;
  /** The longest wait, in ms. Default: that of the options. */
  readonly maxWaitMs?: number;
  readonly start: () => Promise<T>;
}

interface Share {
  running: number;
  /** Each is called when the work may start, or with the error that ends the wait. */
  readonly waiting: Set<(refusal?: unknown) => void>;
}

/** Work of one share starts in the order in which it was added. The caller bounds the number that wait in total. */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  readonly #alarm: Clock['alarm'];
  /** The shares that run or wait, by id; the one whose last start is longest ago is first. */
  readonly #shares = new Map<string, Share>();
  /** Slots that are taken, or free and about to be passed on. */
  running = 0;
  waiting = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
    this.#alarm = spreadAlarm(options.scheduler, options.clock.alarm);
  }

  get shares(): number {
    return this.#shares.size;
  }

  /**
   * Runs `start` as soon as there is a slot, and settles as it does. Throws the refusal when the wait gets too long, and
   * whenever it fails after `signal` was aborted.
   */
  async take<T>(request: SlotRequest<T>): Promise<T> {
    const { shareId: asked = ANONYMOUS.id, signal, start } = request;
    const shareId = countedIdOf(asked);
    if (signal?.aborted) throw this.#refusal('aborted');
    const share = this.#shares.get(shareId) ?? { running: 0, waiting: new Set() };
    if (this.running < this.#options.atOnce && this.#mayStart(shareId, share)) {
      this.running += 1;
      this.#enter(shareId, share);
    } else await this.#wait(shareId, share, request);
    const leave = this.#leaving(shareId, share);
    try {
      return await start();
    } catch (thrown) {
      throw signal?.aborted ? this.#refusal('aborted', thrown) : thrown;
    } finally {
      leave();
    }
  }

  /** Gives up the slot when it is called, or after `maxHoldMs`. */
  #leaving(shareId: string, share: Share): () => void {
    const { scheduler, maxHoldMs } = this.#options;
    let isHolding = true;
    const leave = (): void => {
      cancel?.();
      if (!isHolding) return;
      isHolding = false;
      share.running -= 1;
      this.#forgetIdle(shareId, share);
      if (this.waiting === 0) this.running -= 1;
      else scheduler.run(this.#passOn);
    };
    const cancel = maxHoldMs === undefined ? undefined : this.#alarm(maxHoldMs, leave);
    return leave;
  }

  #mayStart(shareId: string, { running }: Share): boolean {
    return shareId === ANONYMOUS.id || running < this.#options.atOncePerShare;
  }

  #enter(shareId: string, share: Share): void {
    share.running += 1;
    this.#shares.delete(shareId);
    this.#shares.set(shareId, share);
  }

  /** Gives a free slot to the next work. It runs as a task: thousands may end, or fail at once, in one turn. */
  readonly #passOn = (): void => {
    const next = this.#nextShare();
    if (next === undefined) {
      this.running -= 1;
      return;
    }
    const [shareId, share] = next;
    const [go] = share.waiting;
    this.#enter(shareId, share);
    go?.();
  };

  /** The waiting share of which the fewest run, and one may start; of several the one whose last start is longest ago. */
  #nextShare(): [string, Share] | undefined {
    let next: [string, Share] | undefined;
    for (const [shareId, share] of this.#shares) {
      if (share.waiting.size === 0 || !this.#mayStart(shareId, share)) continue;
      if (next === undefined || share.running < next[1].running) next = [shareId, share];
      if (share.running === 0) break;
    }
    return next;
  }

  async #wait(
    shareId: string,
    share: Share,
    request: Pick<SlotRequest<unknown>, 'signal' | 'maxWaitMs'>,
  ): Promise<void> {
    const { signal, maxWaitMs = this.#options.maxWaitMs } = request;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const go = (refusal?: unknown): void => {
      cancelTimeout?.();
      signal?.removeEventListener('abort', stop);
      share.waiting.delete(go);
      this.waiting -= 1;
      this.#forgetIdle(shareId, share);
      if (refusal === undefined) resolve();
      else reject(refusal);
    };
    const stop = (): void => go(this.#refusal('aborted'));
    const giveUp = (): void => go(this.#refusal('late'));
    const cancelTimeout = maxWaitMs === undefined ? undefined : this.#alarm(maxWaitMs, giveUp);
    signal?.addEventListener('abort', stop);
    share.waiting.add(go);
    this.waiting += 1;
    this.#shares.set(shareId, share);
    return promise;
  }

  #refusal(why: 'late' | 'aborted', cause?: unknown): Error {
    return this.#options.refusal?.(why, cause) ?? new Error(`the work was ${why}`, { cause });
  }

  #forgetIdle(shareId: string, { running, waiting }: Share): void {
    if (running === 0 && waiting.size === 0) this.#shares.delete(shareId);
  }
}
