// `npm run conformance`: the official MCP conformance suites against the everything fixture and the SDK's client, directly
// and through the gateway at a template, `/mcp` and a view, compared check by check; see targets.ts. Ends with status 1
// when anything differs that is not on an explicit list, and closes with `N passed, N failed, N skipped`, in scenarios.

import { buildProgram } from '../runner/built-program.ts';
import { isSuccess, printClosingLine } from '../runner/run-specs.ts';
import { type ConformanceOptions, readOptions } from './options.ts';
import { type Outcome, totalOf } from './outcome.ts';
import { details, headLine, outcomeLine } from './report.ts';
import { CLIENT_TARGETS, TARGETS } from './targets.ts';

const print = (text: string): void => void process.stdout.write(`${text}\n`);

try {
  const names = [...TARGETS, ...CLIENT_TARGETS].map(({ name }) => name);
  process.exitCode = await main(readOptions(process.argv.slice(2), names));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

async function main(options: ConformanceOptions): Promise<number> {
  const interrupt = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort());
  const outcomes: Outcome[] = [];
  print(headLine());
  const report = (outcome: Outcome): void => {
    outcomes.push(outcome);
    print(outcomeLine(outcome));
  };
  const reportFlaky = (first: Outcome): void => print(`flaky, it runs once more:${details([first])}`);
  await buildProgram();
  // Only now: the module takes the path of the program when it is loaded.
  const { runConformance } = await import('./run.ts');
  await runConformance(options, { report, reportFlaky }, interrupt.signal);
  const totals = { ...totalOf(outcomes), files: [] };
  print(details(outcomes));
  printClosingLine(totals);
  return isSuccess(totals) ? 0 : 1;
}
