// The cost of one feature: a case with it and the same case without it, measured alternately, and the median of the
// differences. A slow minute affects both sides of a pair, so the difference is much more certain than the two figures.

import type { BenchmarkCase, Letter } from './cases.ts';
import type { LoadResult } from './load.ts';
import type { BenchmarkOptions } from './options.ts';
import { load } from './rounds.ts';
import { type SureMedian, sureMedian } from './statistics.ts';

/** The difference in CPU per call, in us. */
export interface PairResult {
  readonly name: string;
  readonly without: Letter;
  readonly withIt: Letter;
  readonly differences: readonly number[];
  readonly cost: SureMedian;
  /** Highest allowed cost, in us. */
  readonly limit: number;
  readonly failures: number;
}

/** The compared cases. */
const PAIRS: readonly Pick<PairResult, 'name' | 'without' | 'withIt' | 'limit'>[] = [
  { name: 'API key and rate limit, three HTTP instances', without: 'c', withIt: 'f', limit: 8 },
  { name: 'token and rate limit, three HTTP instances', without: 'c', withIt: 'h', limit: 8 },
  { name: 'API key and rate limit, one stdio process', without: 'd', withIt: 'g', limit: 8 },
  { name: 'audit of calls and log, one stdio process', without: 'd', withIt: 'n', limit: 10 },
];

const connections = 16;

/** Measures every pair whose cases exist. `onPair` receives the CPU time of both sides of each pair. */
export async function measurePairs(
  cases: readonly BenchmarkCase[],
  options: BenchmarkOptions,
  onPair: (name: string, round: number, withoutIt: number, withIt: number) => void,
): Promise<PairResult[]> {
  const results: PairResult[] = [];
  for (const { name, without, withIt, limit } of PAIRS) {
    const one = cases.find(({ letter }) => letter === without);
    const other = cases.find(({ letter }) => letter === withIt);
    if (one === undefined || other === undefined) continue;
    const differences: number[] = [];
    let failures = 0;
    for (let round = 1; round <= options.pairRounds; round += 1) {
      // The order changes every round, so that no side always runs after the other.
      const isFirst = round % 2 === 1;
      const first = await load(isFirst ? one : other, connections, options);
      const second = await load(isFirst ? other : one, connections, options);
      const [base, more] = isFirst ? [first, second] : [second, first];
      failures += first.failures + second.failures;
      const [baseCpu, moreCpu] = [cpuOf(base), cpuOf(more)];
      if (baseCpu === undefined || moreCpu === undefined) continue;
      differences.push(moreCpu - baseCpu);
      onPair(name, round, baseCpu, moreCpu);
    }
    results.push({ name, without, withIt, differences, cost: sureMedian(differences), limit, failures });
  }
  return results;
}

function cpuOf({ cpuMicrosecondsPerCall }: LoadResult): number | undefined {
  return cpuMicrosecondsPerCall ?? undefined;
}
