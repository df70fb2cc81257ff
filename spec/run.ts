// `npm run spec`: finds the specs, runs them in a few processes, closes with `N passed, N failed, N skipped`.
// Why not uvu's own command line: it passes silently in half a dozen ways; spec/system/runner/runner.spec.ts holds each of them shut.

import { readOptions } from './runner/options.ts';
import { isSuccess, printClosingLine, runSpecs } from './runner/run-specs.ts';

try {
  const totals = await runSpecs(readOptions(process.argv.slice(2)));
  if (totals.passed + totals.failed === 0) process.stderr.write('no test was run\n');
  printClosingLine(totals);
  process.exitCode = isSuccess(totals) ? 0 : 1;
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
