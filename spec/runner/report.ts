// Prints the outcomes of spec files: a line for each during the run, details after it. Knows no process.

import type { FileResult } from './result.ts';

const slowestShown = 10;

/** One line per file: verdict, path, counts, a note if there is one, time. */
export function printLine(name: string, result: FileResult, note = ''): void {
  const outcome = result.failed > 0 ? 'FAIL' : 'ok  ';
  const counts = [
    `${result.passed} passed`,
    result.failed > 0 ? `${result.failed} failed` : '',
    result.skipped.length > 0 ? `${result.skipped.length} skipped` : '',
    note,
  ].filter(Boolean);
  write(`${outcome} ${name}  ${counts.join(', ')}  ${Math.round(result.durationMs)} ms`);
}

/** The ten files that took longest, so that a maintainer of a slow run sees where its time goes; none for a few files. */
export function printSlowest(results: ReadonlyMap<string, FileResult>): void {
  if (results.size <= slowestShown) return;
  const slowest = [...results].sort(([, a], [, b]) => b.durationMs - a.durationMs).slice(0, slowestShown);
  write('\nslowest:');
  for (const [name, { durationMs }] of slowest) write(`  ${Math.round(durationMs / 1000)} s  ${name}`);
}

/** Every failure in full, with the output of its file, then every skip with its reason. In the order of `names`. */
export function printDetails(names: readonly string[], results: ReadonlyMap<string, FileResult>): void {
  for (const name of names) {
    const result = results.get(name);
    if (result && result.failed > 0) printFailures(name, result);
  }
  const skips = [...results].flatMap(([name, result]) =>
    result.skipped.map((skip) => ({ ...skip, file: name })),
  );
  if (skips.length > 0) write('\nskipped:');
  for (const { file, suite, name, reason } of skips) {
    write(`  ${file}  ${suite} > ${name}: ${reason ?? 'no reason given'}`);
  }
}

/** Files that failed at first and passed at the second attempt, in full: not failures, but they need attention. */
export function printFlaky(firstResults: ReadonlyMap<string, FileResult>): void {
  if (firstResults.size === 0) return;
  write('\nflaky:');
  for (const [name, result] of firstResults) printFailures(name, result);
}

function printFailures(name: string, { failures, output }: FileResult): void {
  write(`\n---- ${name}`);
  for (const failure of failures) write(indent(failure.trim()));
  if (output.trim()) write(`  output of the file:\n${indent(output.trim())}`);
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
