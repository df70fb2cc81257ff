// Counts the requests of principals with an hourly limit, and the calls of tools that views limit: in Redis or, without it, in
// memory, where the nodes of a deployment share the limit in chunks (chunked-counter.ts). When neither answers, this process
// counts alone and refuses no request because of that.

import { countedIdOfCaller, type Principal } from '../../domain/accounts/principal.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Window, WindowCounter } from '../../domain/memory/window-counter.ts';
import type { Clock } from '../../domain/time/clock.ts';

/** A fixed window that begins with the first request: a sliding one has no single time for `X-RateLimit-Reset`. */
export const RATE_WINDOW_SECONDS = 3_600;
/** The window of calls that a view limits. */
export const CALL_WINDOW_SECONDS = 60;

/**
 * A principal that has used up its requests may send this many messages per second that do not count as requests. More are
 * refused before their body is read, because only the body shows whether a message counts.
 */
export const FREE_MESSAGES_PER_SECOND = 60;

/** The most principals that are counted in memory. */
export const MAX_COUNTED_PRINCIPALS = 50_000;

/** Counts of all nodes; undefined, after a bounded time, when they are unavailable. */
export interface SharedCounter {
  /**
   * Adds `count` and compares with the limit in one step: a count over the limit is not added. Default window:
   * RATE_WINDOW_SECONDS.
   */
  add(key: string, count: number, limit: number, windowSeconds?: number): Promise<Window | undefined>;
  close(): void;
}

/** Counts with the other nodes, of which each admits a part of the limit; see chunked-counter.ts. */
export interface DividedCounter {
  add(key: string, count: number, limit: number): Window | Promise<Window>;
  peek(key: string, limit: number): Window;
}

/** The window of one principal after a count. */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Unix time at which the window ends, in seconds. */
  readonly resetAtSeconds: number;
  /** The time to wait; set when this request exceeds the limit; by `peek`, when the next one would. */
  readonly retryAfterSeconds?: number;
}

/** One limit, in windows of one length. */
export class RateLimiter {
  readonly #own: WindowCounter;
  readonly #windowSeconds: number;
  readonly #free = new WindowCounter({ windowSeconds: 1, keys: MAX_COUNTED_PRINCIPALS });
  /** The ends of the windows in which the shared counter had no requests left. */
  readonly #spentUntilMs = new LruMap<number>(MAX_COUNTED_PRINCIPALS);
  readonly #clock: Clock;
  readonly #shared: SharedCounter | undefined;
  #chunks: DividedCounter | undefined;

  /** `shared`: the counter of all processes. Without it this process counts alone. */
  constructor(clock: Clock, shared?: SharedCounter, windowSeconds = RATE_WINDOW_SECONDS) {
    this.#clock = clock;
    this.#shared = shared;
    this.#windowSeconds = windowSeconds;
    this.#own = new WindowCounter({ windowSeconds, keys: MAX_COUNTED_PRINCIPALS });
  }

  /** Counts in chunks from now on, because there are other nodes, where Redis does not count. */
  shareIn(chunks: DividedCounter): void {
    this.#chunks = chunks;
  }

  /**
   * `id`: the counted id of the principal (`countedIdOf`). Counts a request, or `count` of them at once, of a principal
   * with this hourly limit; without a promise when this process counts alone, and within a chunk. Allows the
   * request when counting fails. A refused request is not counted.
   */
  take(id: string, limit: number, count = 1): RateLimit | Promise<RateLimit> {
    if (this.#shared === undefined) return this.#count(id, limit, count);
    return this.#shared
      .add(id, count, limit, this.#windowSeconds)
      .then((window) =>
        window === undefined ? this.#count(id, limit, count) : this.#noteSpent(id, window, limit, count),
      );
  }

  /**
   * The present window, without counting; an empty window would begin now. Undefined without a limit, and
   * when Redis counts, because this method is synchronous.
   */
  peek(principal: Principal): RateLimit | undefined {
    const { hourlyLimit: limit } = principal;
    return limit === undefined || this.#shared !== undefined
      ? undefined
      : limitOf(this.#present(countedIdOfCaller(principal), limit), limit, this.#clock.wall(), 0);
  }

  /**
   * Counts a message that may be free. False beyond FREE_MESSAGES_PER_SECOND of a principal that has no request
   * left; others are not counted. When Redis counts, a principal has none left after the count that this process
   * saw.
   */
  takeFree(principal: Principal): boolean {
    const { hourlyLimit: limit } = principal;
    if (limit === undefined) return true;
    const id = countedIdOfCaller(principal);
    const nowMs = this.#clock.now();
    const isSpent =
      this.#shared === undefined
        ? this.#present(id, limit).count >= limit
        : (this.#spentUntilMs.get(id) ?? nowMs) > nowMs;
    if (!isSpent) return true;
    return this.#free.add(id, nowMs, 1, FREE_MESSAGES_PER_SECOND).count <= FREE_MESSAGES_PER_SECOND;
  }

  #noteSpent(id: string, window: Window, limit: number, count: number): RateLimit {
    const { wall, now } = this.#clock;
    const rateLimit = limitOf(window, limit, wall(), count);
    if (rateLimit.remaining === 0) this.#spentUntilMs.set(id, now() + window.endsInMs);
    return rateLimit;
  }

  #present(id: string, limit: number): Window {
    return this.#chunks?.peek(id, limit) ?? this.#own.add(id, this.#clock.now(), 0, limit);
  }

  #count(id: string, limit: number, count: number): RateLimit | Promise<RateLimit> {
    const { wall, now } = this.#clock;
    if (this.#chunks !== undefined) {
      const window = this.#chunks.add(id, count, limit);
      return window instanceof Promise
        ? window.then((counted) => limitOf(counted, limit, wall(), count))
        : limitOf(window, limit, wall(), count);
    }
    return limitOf(this.#own.add(id, now(), count, limit), limit, wall(), count);
  }
}

/** `added`: the part of the count that is not counted when the count exceeds the limit. */
function limitOf({ count, endsInMs }: Window, limit: number, nowMs: number, added: number): RateLimit {
  const rateLimit = {
    limit,
    remaining: Math.max(0, limit - (count <= limit ? count : count - added)),
    resetAtSeconds: Math.ceil((nowMs + endsInMs) / 1000),
  };
  const isRefused = count > limit || (added === 0 && count === limit);
  return !isRefused
    ? rateLimit
    : { ...rateLimit, retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1000)) };
}
