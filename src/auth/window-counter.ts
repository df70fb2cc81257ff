// Counts by key in windows that start with the first count, in memory, for a bounded number of keys.
// What the counts mean is login-throttle.ts; what every call passes counts by itself, hourly-count.ts.

import type { RateLimiterMemory } from 'rate-limiter-flexible';
import { type RecentlyUsed, recentlyUsed } from './recently-used.ts';

/** A window after a count. */
export interface Window {
  readonly count: number;
  readonly endsInMs: number;
}

/** Points of the library's limiters: our limits belong to callers, not to counters, so theirs is out of reach. */
export const BOUNDLESS = Number.MAX_SAFE_INTEGER;

export class WindowCounter {
  readonly #windowSeconds: number;
  readonly #keys: RecentlyUsed<true>;
  #limiter: Promise<RateLimiterMemory> | undefined;

  /** Beyond `keys` the one that was counted longest ago is forgotten. */
  constructor({ windowSeconds, keys }: { readonly windowSeconds: number; readonly keys: number }) {
    this.#windowSeconds = windowSeconds;
    this.#keys = recentlyUsed(keys, (key) => void this.#loaded().then((limiter) => limiter.delete(key)));
  }

  async add(key: string): Promise<Window> {
    const limiter = await this.#loaded();
    if (this.#keys.get(key) === undefined) this.#keys.set(key, true);
    const { consumedPoints, msBeforeNext } = await limiter.consume(key);
    return { count: consumedPoints, endsInMs: msBeforeNext };
  }

  /** Takes a count back. */
  async remove(key: string): Promise<void> {
    await (await this.#loaded()).reward(key);
  }

  /** With the first count: the library brings limiters for a dozen databases, 3 MB that a gateway at rest does not need. */
  #loaded(): Promise<RateLimiterMemory> {
    this.#limiter ??= import('rate-limiter-flexible').then(
      ({ RateLimiterMemory }) =>
        new RateLimiterMemory({ keyPrefix: '', points: BOUNDLESS, duration: this.#windowSeconds }),
    );
    return this.#limiter;
  }
}
