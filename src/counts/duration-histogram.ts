// Counts in buckets that grow by a fixed factor, so that a percentile is exact to within 3 % and recording costs a
// few nanoseconds.

/** The number of buckets for each doubling of the duration. */
const PER_OCTAVE = 16;
/** The duration at which the first bucket ends, in ms. */
const MIN_MS = 0.01;
/** The number of buckets, up to about an hour and a half; longer durations are in the last bucket. */
const BUCKETS = 29 * PER_OCTAVE;

/** The counts of durations, for percentiles. */
export class DurationHistogram {
  readonly #counts: Uint32Array;

  constructor(counts = new Uint32Array(BUCKETS)) {
    this.#counts = counts;
  }

  record(durationMs: number): void {
    const bucket = Math.ceil(Math.log2(durationMs / MIN_MS) * PER_OCTAVE);
    this.#count(Math.min(Math.max(bucket, 0), BUCKETS - 1), 1);
  }

  add(other: DurationHistogram): void {
    for (const [bucket, count] of other.#counts.entries()) this.#count(bucket, count);
  }

  /** A copy, without the durations of an earlier one. */
  since(before = new DurationHistogram()): DurationHistogram {
    return new DurationHistogram(this.#counts.map((count, bucket) => count - (before.#counts[bucket] ?? 0)));
  }

  /** The buckets that are not empty, for `withBuckets` of another node. */
  get buckets(): [bucket: number, count: number][] {
    return [...this.#counts.entries()].filter(([, count]) => count > 0);
  }

  /** A copy, with the durations of these buckets. Unknown ones are left out. */
  withBuckets(buckets: Iterable<readonly [bucket: number, count: number]>): DurationHistogram {
    const sum = this.since();
    for (const [bucket, count] of buckets) if (bucket in sum.#counts) sum.#count(bucket, count);
    return sum;
  }

  /** A percentile in ms; null when nothing was recorded. `share`: 0.95 for the 95th percentile. */
  percentile(share: number): number | null {
    const total = this.#counts.reduce((sum, count) => sum + count, 0);
    if (total === 0) return null;
    const wanted = Math.ceil(total * share);
    let seen = 0;
    const bucket = this.#counts.findIndex((count) => {
      seen += count;
      return seen >= wanted;
    });
    return MIN_MS * 2 ** ((bucket - 0.5) / PER_OCTAVE);
  }

  #count(bucket: number, count: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
  }
}
