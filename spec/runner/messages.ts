// The words a spec process (runner/child.ts) says to the runner (runner/run-file.ts) over the IPC channel.
// Types only: silence is a word too, and a child that ends without `finished` has failed.

import type { Progress, SkippedTest } from './ledger.ts';

/** A test has started or ended; kept so that a file that hangs can be told where. */
export interface ProgressMessage extends Progress {
  readonly kind: 'progress';
}

/** All suites have ended. Said once, and only after the last test. */
export interface FinishedMessage {
  readonly kind: 'finished';
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly SkippedTest[];
  /** What went wrong, each ready to print: failed tests as uvu draws them, then the problems of the file itself. */
  readonly failures: readonly string[];
}

/** An error that reached nobody: an uncaught exception or an unhandled rejection, at whatever moment. */
export interface StrayMessage {
  readonly kind: 'stray';
  readonly text: string;
}

/** The process is still alive some time after its suites ended. */
export interface LingeringMessage {
  readonly kind: 'lingering';
  /** What Node counts as still open: `TCPServerWrap`, `Timeout`, `ProcessWrap`, ... */
  readonly resources: readonly string[];
}

export type ChildMessage = ProgressMessage | FinishedMessage | StrayMessage | LingeringMessage;
