// Measures two cases in alternating rounds. Alternating means A, B, then B, A, and so on: a slow minute of the machine affects both
// sides of a pair alike, and no case always runs after the same one. So the ratio of a pair is much more certain than its figures.

import { fileURLToPath } from 'node:url';
import { runNode } from './children.ts';
import type { LoadResult } from './load.ts';
import { median, medianOrNull } from './statistics.ts';

/** What one process serves, and how it is called. */
export interface Case {
  readonly title: string;
  readonly url: string;
  readonly body: string;
  /** Credentials, or headers of the protocol. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Opens a session on each connection before the measurement: the body of that request. */
  readonly sessionBody?: string;
  /** Where the session is opened. Default: `url`. */
  readonly sessionUrl?: string;
  /** Runs before each measurement; the returned function runs after it. */
  readonly prepare?: () => Promise<() => void>;
  /** The process whose CPU and memory are measured: the program between client and backend. */
  readonly pid: number;
  /** A second process whose CPU is measured. */
  readonly otherPid?: number;
}

/** How one case is put under load. */
export interface LoadOptions {
  readonly connections: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

/** One case at one concurrency: the medians of its rounds. */
export interface Measurement {
  readonly title: string;
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicrosecondsPerCall: number | null;
  readonly residentBytes: number | null;
  /** Sum over all rounds. Any other number than 0 makes the figures worthless. */
  readonly failures: number;
}

/** The order of a round: forward in odd ones, backward in even ones. */
export function alternating<T>(round: number, items: readonly T[]): readonly T[] {
  return round % 2 === 1 ? items : items.toReversed();
}

/** Puts one case under load for the time of one round. */
export async function load(
  { url, body, headers = {}, sessionBody = '', sessionUrl = url, prepare, pid, otherPid }: Case,
  { connections, seconds, warmUpSeconds }: LoadOptions,
): Promise<LoadResult> {
  const end = await prepare?.();
  try {
    const printed = await runNode([
      fileURLToPath(new URL('load.ts', import.meta.url)),
      `--url=${url}`,
      `--body=${body}`,
      `--headers=${JSON.stringify(headers)}`,
      `--session-body=${sessionBody}`,
      `--session-url=${sessionUrl}`,
      `--connections=${connections}`,
      `--seconds=${seconds}`,
      `--warm-up-seconds=${warmUpSeconds}`,
      `--pid=${pid}`,
      ...(otherPid === undefined ? [] : [`--other-pid=${otherPid}`]),
    ]);
    return JSON.parse(printed);
  } finally {
    end?.();
  }
}

export function measurementOf(
  { title }: Case,
  connections: number,
  rounds: readonly LoadResult[],
): Measurement {
  return {
    title,
    connections,
    requestsPerSecond: median(rounds.map((round) => round.requestsPerSecond)),
    p50Ms: median(rounds.map((round) => round.p50Ms)),
    p99Ms: median(rounds.map((round) => round.p99Ms)),
    cpuMicrosecondsPerCall: medianOrNull(rounds.map((round) => round.cpuMicrosecondsPerCall)),
    residentBytes: medianOrNull(rounds.map((round) => round.residentBytes)),
    failures: rounds.reduce((sum, round) => sum + round.failures, 0),
  };
}

/** The ratio of two figures of one round; NaN, which no bar accepts, when a figure is missing or a call failed. */
export function ratioOf(
  figure: 'cpuMicrosecondsPerCall' | 'p99Ms' | 'requestsPerSecond',
  one: LoadResult | undefined,
  other: LoadResult | undefined,
): number {
  const isSound = one?.failures === 0 && other?.failures === 0;
  return isSound ? (one[figure] ?? Number.NaN) / (other[figure] ?? Number.NaN) : Number.NaN;
}
