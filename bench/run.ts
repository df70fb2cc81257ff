// `npm run bench`: starts everything, measures in alternating rounds, prints, compares with the bars, writes
// the results. options.ts has the flags; docs/explanation/benchmarks.md explains the results.

import { checkBars } from './bars.ts';
import { openHarness } from './cases.ts';
import { type IdleSessions, measureIdleSessions } from './idle-sessions.ts';
import { describeMachine } from './machine.ts';
import { type BenchmarkOptions, readOptions, usage } from './options.ts';
import { measurePairs, type PairResult } from './pairs.ts';
import { barsOf, pairsOf, tableOf, writeResults } from './report.ts';
import { type Measurement, measure } from './rounds.ts';
import { measureStartup, type Startup } from './startup.ts';

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const printWarning = (text: string): void => print(`\n!!! ${text}\n`);

/** Runs the benchmark; returns the exit code. */
export async function runBenchmark(options: BenchmarkOptions): Promise<number> {
  const machine = describeMachine();
  const missing: string[] = [];
  const skip = (what: string, error: unknown): void => {
    const reason = error instanceof Error ? error.message : String(error);
    missing.push(what);
    printWarning(`SKIPPED ${what}: ${reason}`);
  };
  print(`${machine.cores} cores, ${machine.cpu}, Node ${machine.node}, load average ${machine.loadBefore}`);

  const { measurements, pairs } = await measureCases(options, skip);
  let startup: Startup | undefined;
  if (wantsGateway(options)) {
    try {
      startup = await measureStartup(options.coldStarts);
    } catch (error) {
      skip('start to listening, resident memory at rest', error);
    }
  }
  let sessions: IdleSessions | undefined;
  if (options.only.includes('m')) {
    try {
      sessions = await measureIdleSessions();
    } catch (error) {
      skip('memory of idle sessions', error);
    }
  }

  const bars = checkBars(measurements, pairs, startup, sessions);
  print(`\n${tableOf(measurements)}\n\n${pairsOf(pairs)}\n\n${barsOf(bars)}\n`);
  if ([...measurements, ...pairs].some((one) => one.failures > 0))
    printWarning('some calls FAILED: their figures mean nothing');
  if (options.writes) {
    const { rounds, seconds } = options;
    const date = new Date().toISOString();
    await writeResults({
      date,
      machine,
      rounds,
      seconds,
      measurements,
      pairs,
      startup: startup ?? null,
      sessions: sessions ?? null,
      bars,
      missing,
    });
    print('wrote bench/results.json and docs/explanation/benchmarks.md');
  } else {
    print(
      'a partial run: bench/results.json and docs/explanation/benchmarks.md are left alone (--write changes that)',
    );
  }
  const isAllReached = bars.every((bar) => bar.verdict === 'reached');
  print(isAllReached ? 'all bars reached' : 'not all bars reached');
  return options.isStrict && !isAllReached ? 1 : 0;
}

async function measureCases(
  options: BenchmarkOptions,
  skip: (what: string, error: unknown) => void,
): Promise<{ measurements: Measurement[]; pairs: PairResult[] }> {
  const harness = await openHarness(wantsGateway(options));
  try {
    for (const { letters, reason } of harness.missing) skip(`(${letters})`, reason);
    const cases = harness.cases.filter((one) => options.only.includes(one.letter));
    const measurements = await measure(cases, options, (round, one, connections, result) => {
      const rate = Math.round(result.requestsPerSecond);
      const cpu = result.cpuMicrosecondsPerCall?.toFixed(1) ?? '-';
      const failures = result.failures === 0 ? '' : `  ${result.failures} FAILED`;
      print(
        `${connections} connections, round ${round}: (${one.letter}) ${rate}/s, ${cpu} us per call${failures}`,
      );
    });
    const pairs = await measurePairs(cases, options, (name, round, withoutIt, withIt) => {
      print(`${name}, round ${round}: ${withoutIt.toFixed(1)} us without, ${withIt.toFixed(1)} us with`);
    });
    return { measurements, pairs };
  } finally {
    await harness.stop();
  }
}

function wantsGateway({ only }: BenchmarkOptions): boolean {
  return only.some((letter) => 'cdfghijklmno'.includes(letter));
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1)); // ends the children, too
try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) print(usage);
  else process.exitCode = await runBenchmark(options);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
