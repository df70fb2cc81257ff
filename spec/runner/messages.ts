// The messages between the runner (spec-process.ts) and a process of specs (worker.ts) over the IPC channel.
// Types only. A process that ends without `finished` has failed.

import type { Progress, SkippedTest } from './registry.ts';

/** To the process: the next file. */
export interface RunRequest {
  /** Absolute path. */
  readonly file: string;
  /** Longest time that a resource may stay open after the last test, in ms. */
  readonly graceMs: number;
  /** No other file runs in the process, so that its state afterwards does not matter. */
  readonly isAlone: boolean;
}

/** A test has started or ended; kept so that the report of a file that hangs can name the test. */
interface ProgressMessage extends Progress {
  readonly kind: 'progress';
}

/** All suites of the file have ended. Sent once per file. */
export interface FinishedMessage {
  readonly kind: 'finished';
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly SkippedTest[];
  /** The failures, ready to print: failed tests in the form of uvu, then the problems of the file itself. */
  readonly failures: readonly string[];
}

/** An error that nothing caught: an uncaught exception or an unhandled rejection, at any time. */
interface UncaughtMessage {
  readonly kind: 'uncaught';
  readonly text: string;
}

/** A resource is still open some time after the suites ended. */
interface LingeringMessage {
  readonly kind: 'lingering';
  /** The open resources by Node's names: `TCPServerWrap`, `Timeout`, `ProcessWrap`, ... */
  readonly resources: readonly string[];
}

/** The file has ended, and the process could run another one. */
interface IdleMessage {
  readonly kind: 'idle';
  /** False when processes that the file started still live. */
  readonly isReusable: boolean;
}

export type WorkerMessage =
  | ProgressMessage
  | FinishedMessage
  | UncaughtMessage
  | LingeringMessage
  | IdleMessage;
