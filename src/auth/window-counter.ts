// Counts by key in windows that start with the first count, in memory, for a bounded number of keys.
// What the counts mean is login-throttle.ts; what every call passes counts by itself, hourly-count.ts.

import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';

/** A window after a count. */
export interface Window {
  readonly count: number;
  readonly endsInMs: number;
}

/** Points of the library's limiters: our limits belong to callers, not to counters, so theirs is out of reach. */
export const BOUNDLESS = Number.MAX_SAFE_INTEGER;

export class WindowCounter {
  readonly #limiter: RateLimiterMemory;
  readonly #keys: LRUCache<string, true>;

  /** Beyond `keys` the one that was counted longest ago is forgotten. */
  constructor(bounds: { readonly windowSeconds: number; readonly keys: number }) {
    const limiter = new RateLimiterMemory({
      keyPrefix: '',
      points: BOUNDLESS,
      duration: bounds.windowSeconds,
    });
    this.#limiter = limiter;
    this.#keys = new LRUCache({ max: bounds.keys, dispose: (_, key) => void limiter.delete(key) });
  }

  async add(key: string): Promise<Window> {
    if (this.#keys.get(key) === undefined) this.#keys.set(key, true);
    const { consumedPoints, msBeforeNext } = await this.#limiter.consume(key);
    return { count: consumedPoints, endsInMs: msBeforeNext };
  }

  /** Takes a count back. */
  async remove(key: string): Promise<void> {
    await this.#limiter.reward(key);
  }
}
