// Sums over the last minute, by key: each second adds its counts and subtracts the counts that are a minute old. The
// cost per second is proportional to the number of instances that were called in it.

interface Counts {
  readonly requests: number;
  readonly failures: number;
}

const MINUTE_MS = 60_000;

interface Second {
  readonly atMs: number;
  readonly counts: ReadonlyMap<string, Counts>;
}

const NONE: Counts = { requests: 0, failures: 0 };

export class LastMinute {
  readonly #seconds: Second[] = [];
  readonly #sums = new Map<string, Counts>();

  /** Adds one second, which ends at `atMs`; keys without counts may be absent. */
  add(atMs: number, counts: Iterable<readonly [string, Counts]>): void {
    const second = new Map<string, Counts>();
    for (const [key, { requests, failures }] of counts) {
      if (requests + failures > 0) second.set(key, { requests, failures });
    }
    this.#seconds.push({ atMs, counts: second });
    for (const [key, added] of second) this.#shift(key, added, 1);
    // Seconds are compared by time: after a lost connection some are missing. The clock may be set back.
    const kept = this.#seconds.findIndex((one) => Math.abs(atMs - one.atMs) < MINUTE_MS);
    for (const { counts: old } of this.#seconds.splice(0, kept))
      for (const [key, removed] of old) this.#shift(key, removed, -1);
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
