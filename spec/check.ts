// `npm test`: type-check, lint, a search for unused code, and the specs without the system tier, one after the other, each with its
// time; closes with the runner's line, in which each failed tool counts as one failure. Arguments go to the spec runner
// (`npm test -- balancing`).
// The tools are started through their JavaScript entries, so that this works alike in every shell and on Windows.

import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type RunOptions, readOptions } from './runner/options.ts';
import { isSuccess, printClosingLine, runSpecs } from './runner/run-specs.ts';

const repository = fileURLToPath(new URL('..', import.meta.url));

let options: RunOptions | undefined;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
if (options) process.exitCode = (await checkAll(options)) ? 0 : 1;

async function checkAll(specs: RunOptions): Promise<boolean> {
  // Each checker checks many types again that others check, too; the default is 4.
  const checking = ['--pretty', 'false', '--checkers', String(Math.min(4, availableParallelism()))];
  const steps = [
    await runTool('type-check', 'typescript', 'bin/tsc', ['--noEmit', ...checking]),
    await runTool('type-check of the console', 'typescript', 'bin/tsc', ['-p', 'web', ...checking]),
    await runTool('lint', '@biomejs/biome', 'bin/biome', [
      'check',
      '--error-on-warnings',
      '--max-diagnostics=100',
    ]),
    await runTool('unused code', 'knip', 'bin/knip.js', ['--no-config-hints']),
  ];
  const startedAt = performance.now();
  const totals = await runSpecs(specs);
  const specsPassed = isSuccess(totals);
  printStep('specs', specsPassed, startedAt);
  // Without this a filter that matches nothing would close with zero failures.
  const failedSteps = steps.filter((passed) => !passed).length;
  printClosingLine({ ...totals, failed: totals.failed + failedSteps });
  return specsPassed && failedSteps === 0;
}

/** Runs one tool of the repository to its end; shows what it says only when it fails. */
async function runTool(
  title: string,
  packageName: string,
  entry: string,
  args: readonly string[],
): Promise<boolean> {
  const startedAt = performance.now();
  const file = join(repository, 'node_modules', packageName, entry);
  const limits = { cwd: repository, maxBuffer: 64 * 1024 * 1024 };
  const [passed, output] = await promisify(execFile)(process.execPath, [file, ...args], limits).then(
    () => [true, ''],
    (failed) => [false, `${failed.stdout}${failed.stderr}` || failed.message],
  );
  printStep(title, passed, startedAt);
  if (!passed) process.stdout.write(`${output.trimEnd()}\n\n`);
  return passed;
}

function printStep(title: string, passed: boolean, startedAt: number): void {
  const durationMs = Math.round(performance.now() - startedAt);
  process.stdout.write(`${passed ? 'ok  ' : 'FAIL'} ${title}  ${durationMs} ms\n`);
}
