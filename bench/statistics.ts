// The statistics of the benchmark: medians and their confidence intervals.

/** The median; for an even number of values the mean of the middle two. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper;
}

/** The median of the non-null values; null if there are none. */
export function medianOrNull(values: readonly (number | null)[]): number | null {
  const present = values.filter((value) => value !== null);
  return present.length === 0 ? null : median(present);
}

/** The values a quarter and three quarters up the sorted values, each the nearest one that exists. */
export function quartiles(values: readonly number[]): readonly [low: number, high: number] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] ?? Number.NaN;
  return [at(0.25), at(0.75)];
}

/** A median, and an interval that contains the true median in at least 95 of 100 repetitions, for any distribution. */
export interface SureMedian {
  readonly median: number;
  /** Undefined for fewer than six values: not even their whole range has that confidence. */
  readonly interval: readonly [low: number, high: number] | undefined;
}

/**
 * The interval runs from the k-th smallest to the k-th largest value: each value is below the true median
 * with probability 1/2, so the number of such values is binomial. k is the largest with enough confidence.
 */
export function sureMedian(values: readonly number[]): SureMedian {
  const sorted = values.toSorted((a, b) => a - b);
  let outside = 0;
  let probability = 0.5 ** sorted.length;
  let rank = 0;
  while (rank < sorted.length / 2) {
    outside += 2 * probability;
    if (outside > 0.05) break;
    probability *= (sorted.length - rank) / (rank + 1);
    rank += 1;
  }
  const low = sorted[rank - 1];
  const high = sorted[sorted.length - rank];
  const interval = low === undefined || high === undefined ? undefined : ([low, high] as const);
  return { median: median(sorted), interval };
}
