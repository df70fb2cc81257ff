// The types that the parts of the runner share: the limits of a file, its outcome, and the totals.

import type { SkippedTest } from './registry.ts';

/** Time limits of one file. */
export interface FileLimits {
  /** Longest the file may run, in ms; then its whole process group is killed. */
  readonly timeoutMs: number;
  /** Longest time the process may live after its last test, in ms. Exceeding it means that the file left a resource open. */
  readonly graceMs: number;
}

/** The outcome of the tests of one file. */
interface FileOutcome {
  readonly passed: number;
  /** Failed tests plus failures of the file itself: a timeout, an early exit, an uncaught rejection, ... */
  readonly failed: number;
  readonly skipped: readonly SkippedTest[];
  /** Ready to print. Empty exactly if `failed` is zero. */
  readonly failures: readonly string[];
}

/** A verdict with the details for printing it. */
export interface FileResult extends FileOutcome {
  /** The output of the file on stdout and stderr, the last 64 KiB of it. */
  readonly output: string;
  readonly durationMs: number;
}

/** The numbers of the closing line. */
export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}
