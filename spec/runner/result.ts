// The shapes that travel between the parts of the runner: the limits of a file, what became of it, and the totals.

import type { SkippedTest } from './registry.ts';

/** Time limits of one file. */
export interface FileLimits {
  /** Longest the file may run, in ms; then its whole process group is killed. */
  readonly timeoutMs: number;
  /** Longest the process may live after its last test, in ms. Exceeding it means that the file left something open. */
  readonly graceMs: number;
}

/** What became of the tests of one file. */
interface Verdict {
  readonly passed: number;
  /** Failed tests plus failures of the file itself: a timeout, an early exit, an uncaught rejection, ... */
  readonly failed: number;
  readonly skipped: readonly SkippedTest[];
  /** Each ready to print. Not empty exactly when `failed` is above zero. */
  readonly failures: readonly string[];
}

/** A verdict with what it takes to print it. */
export interface FileResult extends Verdict {
  /** What the file wrote on stdout and stderr, the last 64 KiB of it. */
  readonly output: string;
  readonly durationMs: number;
}

/** The numbers of the closing line. */
export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}
