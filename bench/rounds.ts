// Measures the cases in alternating rounds and reduces the rounds to medians. Alternating means a, b, c, d,
// e, then back e, d, c, …: a slow minute of the machine affects all cases alike, and no case always runs
// after the same one.

import { fileURLToPath } from 'node:url';
import type { BenchmarkCase } from './cases.ts';
import { runNode } from './children.ts';
import type { LoadResult } from './load.ts';
import type { BenchmarkOptions } from './options.ts';
import { median, medianOrNull } from './statistics.ts';

/** One case at one concurrency: the rounds and their medians. */
export interface Measurement {
  readonly letter: BenchmarkCase['letter'];
  readonly title: string;
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicrosecondsPerCall: number | null;
  readonly residentBytes: number | null;
  /** Sum over all rounds. Any other number than 0 makes the figures worthless. */
  readonly failures: number;
  readonly rounds: readonly LoadResult[];
}

/** Measures all cases. `onResult` receives each figure as it comes. */
export async function measure(
  cases: readonly BenchmarkCase[],
  options: BenchmarkOptions,
  onResult: (round: number, one: BenchmarkCase, connections: number, result: LoadResult) => void,
): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  for (const connections of options.connections) {
    const results = new Map<BenchmarkCase, LoadResult[]>(cases.map((one) => [one, []]));
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const one of round % 2 === 1 ? cases : cases.toReversed()) {
        const result = await load(one, connections, options);
        results.get(one)?.push(result);
        onResult(round, one, connections, result);
      }
    }
    for (const [one, rounds] of results) measurements.push(reduce(one, connections, rounds));
  }
  return measurements;
}

/** Measures one case for the time of one round. */
export async function load(
  one: BenchmarkCase,
  connections: number,
  options: Pick<BenchmarkOptions, 'seconds' | 'warmUpSeconds'>,
): Promise<LoadResult> {
  const end = await one.prepare?.();
  try {
    return await loadPrepared(one, connections, options);
  } finally {
    end?.();
  }
}

async function loadPrepared(
  { url, body, headers = {}, sessionBody = '', pid }: BenchmarkCase,
  connections: number,
  { seconds, warmUpSeconds }: Pick<BenchmarkOptions, 'seconds' | 'warmUpSeconds'>,
): Promise<LoadResult> {
  const printed = await runNode([
    fileURLToPath(new URL('load.ts', import.meta.url)),
    `--url=${url}`,
    `--body=${body}`,
    `--headers=${JSON.stringify(headers)}`,
    `--session-body=${sessionBody}`,
    `--connections=${connections}`,
    `--seconds=${seconds}`,
    `--warm-up-seconds=${warmUpSeconds}`,
    ...(pid === undefined ? [] : [`--pid=${pid}`]),
  ]);
  return JSON.parse(printed);
}

function reduce(
  { letter, title }: BenchmarkCase,
  connections: number,
  rounds: readonly LoadResult[],
): Measurement {
  return {
    letter,
    title,
    connections,
    requestsPerSecond: median(rounds.map((round) => round.requestsPerSecond)),
    p50Ms: median(rounds.map((round) => round.p50Ms)),
    p99Ms: median(rounds.map((round) => round.p99Ms)),
    cpuMicrosecondsPerCall: medianOrNull(rounds.map((round) => round.cpuMicrosecondsPerCall)),
    residentBytes: medianOrNull(rounds.map((round) => round.residentBytes)),
    failures: rounds.reduce((sum, round) => sum + round.failures, 0),
    rounds,
  };
}
