// `npm run bench`: starts everything, measures in alternating rounds, prints, compares with the bars, writes
// the results. options.ts has the flags; docs/explanation/benchmarks.md explains the results.

import { Bench } from './bench.ts';
import { type Figure, verdictOf } from './figures.ts';
import { installProgram } from './installed.ts';
import { describeMachine, machineLine } from './machine.ts';
import { type BenchmarkOptions, readOptions, usageFor } from './options.ts';
import { PARTS } from './parts.ts';
import { measurePaths, PATH_NAMES } from './paths.ts';
import { figuresTable, measurementsTable, writeResults } from './report.ts';

const NAMES: readonly string[] = [...PATH_NAMES, ...Object.keys(PARTS)];

/** Runs the benchmark; returns the exit code. */
async function runBenchmark(options: BenchmarkOptions): Promise<number> {
  const print = (text: string): void =>
    void (options.isJson ? process.stderr : process.stdout).write(`${text}\n`);
  const machine = describeMachine();
  print(machineLine(machine));
  const bench = new Bench(options, await installProgram(), print);
  // The first start fills the cache of compiled code.
  await bench.gateway({ http: { http: await bench.endpoints(1) } });
  await bench.stop();
  const figures: Figure[] = [];
  const missing: string[] = [];
  const measure = async (what: string, part: (bench: Bench) => Promise<Figure[]>): Promise<void> => {
    try {
      figures.push(...(await part(bench)));
    } catch (error) {
      missing.push(what);
      print(`\n!!! NOT MEASURED: ${what}: ${error instanceof Error ? error.message : String(error)}\n`);
    } finally {
      await bench.stop();
    }
  };
  const paths = PATH_NAMES.filter((name) => options.only.includes(name));
  if (paths.length > 0) await measure(paths.join(', '), () => measurePaths(bench, paths));
  for (const [name, part] of Object.entries(PARTS))
    if (options.only.includes(name)) await measure(name, part);

  const { measurements } = bench;
  const verdicts = figures.map(verdictOf);
  print(`\n${measurementsTable(measurements)}\n\n${figuresTable(verdicts)}\n`);
  const results = {
    date: new Date().toISOString(),
    machine,
    options,
    measurements,
    figures,
    verdicts,
    missing,
  };
  if (options.isJson) process.stdout.write(`${JSON.stringify(results)}\n`);
  if (options.writes) {
    await writeResults(results);
    print('wrote bench/results.json and docs/explanation/benchmarks.md');
  }
  const failed = verdicts.filter(({ verdict }) => verdict === 'missed' || verdict === 'not measured');
  for (const { name, bar, found, verdict } of failed)
    print(`${verdict.toUpperCase()}: ${name}: ${found}, asked for ${bar}`);
  if (failed.length + missing.length === 0) print('all bars reached');
  return failed.length + missing.length === 0 ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1)); // ends the children, too
try {
  const options = readOptions(process.argv.slice(2), NAMES);
  if (options === undefined) process.stdout.write(usageFor(NAMES));
  else process.exitCode = await runBenchmark(options);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
