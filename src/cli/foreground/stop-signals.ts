// Listens for signals and uncaught errors, the reasons to end the program. run-gateway.ts ends it.

import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty } from 'node:tty';

/** Two stop signals closer than this are one Ctrl-C that arrived twice (terminal and npm). */
const SAME_SIGNAL_MS = 500;

export interface StopReason {
  /** The cause: the name of a signal, or `an uncaught error`. */
  readonly cause: string;
  readonly exitCode: number;
}

export interface StopOptions {
  readonly source?: Pick<NodeJS.EventEmitter, 'on' | 'off'>;
  /** A monotonic clock in ms. */
  readonly now?: () => number;
  /** Whether a hangup can mean that the terminal was closed. Default: whether a standard stream is a terminal. */
  readonly hasTerminal?: boolean;
}

/** The most errors that are reported: a loop of errors must not fill a disk during the stop. */
const MAX_REPORTED = 100;
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGBREAK'];

/**
 * `first` resolves with the first signal or uncaught error, `urgent` with the exit code when a further signal
 * demands an immediate end: 130 for SIGINT, 143 for SIGTERM. `wait` resolves after the time, or at a further
 * signal, which is not urgent then. `dispose` returns the signals to Node. A signal within SAME_SIGNAL_MS of
 * the last one is the same Ctrl-C, delivered by the terminal and by npm.
 */
export function listenForStop(onError: (error: unknown) => void, options: StopOptions = {}) {
  const { source = process, now = () => performance.now() } = options;
  const { hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor)) } = options;
  const first = Promise.withResolvers<StopReason>();
  const urgent = Promise.withResolvers<number>();
  let signalAtMs: number | undefined;
  let delay: AbortController | undefined;

  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalAtMs !== undefined && now() - signalAtMs < SAME_SIGNAL_MS) return;
    if (signalAtMs !== undefined && delay === undefined) urgent.resolve(128 + constants.signals[signal]);
    signalAtMs = now();
    delay?.abort();
    first.resolve({ cause: signal, exitCode: 0 });
  };
  const wait = async (ms: number): Promise<void> => {
    delay = new AbortController();
    await pause(ms, delay.signal);
    delay = undefined;
  };
  // Without a listener a hangup ends Node, even under nohup. Without a terminal, none can have been closed.
  const onHangup = (signal: NodeJS.Signals): void => {
    if (hasTerminal) onSignal(signal);
  };
  let reported = 0;
  const onUncaught = (error: unknown): void => {
    first.resolve({ cause: 'an uncaught error', exitCode: 1 });
    if (reported >= MAX_REPORTED) return;
    reported += 1;
    try {
      onError(error);
    } catch {
      // Thrown from here, the error would end the process at once and leave its children behind.
    }
  };

  const listeners = [
    ...SIGNALS.map((signal) => [signal, onSignal] as const),
    ['SIGHUP', onHangup] as const,
    ...['uncaughtException', 'unhandledRejection'].map((event) => [event, onUncaught] as const),
  ];
  for (const [event, listener] of listeners) source.on(event, listener);
  const dispose = (): void => {
    for (const [event, listener] of listeners) source.off(event, listener);
  };
  return { first: first.promise, urgent: urgent.promise, wait, dispose };
}

/**
 * Runs work that ends with Ctrl-C: `signal` aborts at the first SIGINT or SIGTERM, or when the reader of the
 * output ends (`| head -1`). The signals are returned to Node when the work has ended without one, else
 * SAME_SIGNAL_MS after the first: until then the same Ctrl-C may arrive again, and must not end the process
 * while its output is written.
 */
export async function untilSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const dispose = (): void => {
    clearTimeout(timer);
    process.off('SIGINT', end).off('SIGTERM', end);
    process.stdout.off('error', end);
  };
  const end = (): void => {
    timer ??= setTimeout(dispose, SAME_SIGNAL_MS).unref();
    ending.abort();
  };
  process.on('SIGINT', end).on('SIGTERM', end);
  process.stdout.on('error', end);
  try {
    return await work(ending.signal);
  } finally {
    if (timer === undefined) dispose();
  }
}

/** Resolves after the time, or when the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
