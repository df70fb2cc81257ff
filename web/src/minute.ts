// Sums over the last minute, by key: each second adds its counts and subtracts those of the second a minute
// ago. The cost per second is proportional to the number of instances that were called in it.

interface Counts {
  readonly requests: number;
  readonly failures: number;
}

const SECONDS = 60;
const NONE: Counts = { requests: 0, failures: 0 };

export class LastMinute {
  readonly #seconds: ReadonlyMap<string, Counts>[] = [];
  readonly #sums = new Map<string, Counts>();

  /** Adds one second; keys without counts may be absent. */
  add(counts: Iterable<readonly [string, Counts]>): void {
    const second = new Map<string, Counts>();
    for (const [key, { requests, failures }] of counts) {
      if (requests + failures > 0) second.set(key, { requests, failures });
    }
    this.#seconds.push(second);
    for (const [key, added] of second) this.#shift(key, added, 1);
    if (this.#seconds.length <= SECONDS) return;
    for (const [key, old] of this.#seconds.shift() ?? []) this.#shift(key, old, -1);
  }

  of(key: string): Counts {
    return this.#sums.get(key) ?? NONE;
  }

  #shift(key: string, { requests, failures }: Counts, sign: 1 | -1): void {
    const sum = this.of(key);
    const next = {
      requests: sum.requests + sign * requests,
      failures: sum.failures + sign * failures,
    };
    if (next.requests + next.failures === 0) this.#sums.delete(key);
    else this.#sums.set(key, next);
  }
}
