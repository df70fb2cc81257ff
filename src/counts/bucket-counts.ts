// Durations, counted in the buckets of a Prometheus histogram. duration-histogram.ts has finer ones, for percentiles.

/** The upper bounds of the buckets, in seconds. Longer durations are only in the number and the sum. */
export const BUCKET_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** The counts of one Prometheus histogram: durations by bucket, their number and their sum. */
export class BucketCounts {
  /** The number of durations in each bucket, not cumulative. */
  readonly #counts = new Float64Array(BUCKET_SECONDS.length);
  count = 0;
  sumSeconds = 0;

  observe(durationMs: number): void {
    const seconds = durationMs / 1_000;
    this.count += 1;
    this.sumSeconds += seconds;
    const bucket = BUCKET_SECONDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  /** The numbers of durations up to each bound. */
  cumulative(): number[] {
    let sum = 0;
    return Array.from(this.#counts, (count) => {
      sum += count;
      return sum;
    });
  }
}
