// The texts of a conformance run: a line per suite and target during the run, and the differences at the end.

import type { Difference } from './compare.ts';
import { isGood, type Outcome } from './outcome.ts';

/** Lines of differences shown per suite and target. */
const shownDifferences = 60;
const longestMessage = 160;

const columns = ['target', 'suite', 'passed', 'failed', 'warnings', 'different', 'accepted', 'seconds'];
const widths = [32, 12, 8, 8, 10, 11, 10, 9];

/** The head of the table. */
export function headLine(): string {
  return `     ${row(columns)}`;
}

/** One row: numbers of checks, then differences in scenarios. */
export function outcomeLine(outcome: Outcome): string {
  const { target, suite, passed, failed, warnings, scenarios, durationMs } = outcome;
  const cells = [target, suite, passed, failed, warnings, scenarios.different, scenarios.accepted];
  return `${isGood(outcome) ? 'ok  ' : 'FAIL'} ${row([...cells, (durationMs / 1000).toFixed(1)])}`;
}

/** The details of the rows; empty if there are no problems and no differences. */
export function details(outcomes: readonly Outcome[]): string {
  return outcomes.flatMap(detailsOf).join('\n');
}

function detailsOf(outcome: Outcome): string[] {
  const { target, suite, problems, refused, allowed, unused } = outcome;
  const shown = fold(refused);
  const lines = [
    ...problems.map((problem) => `  ${problem}`),
    ...shown.slice(0, shownDifferences).map((line) => `  ${line}`),
    ...(shown.length > shownDifferences ? [`  and ${shown.length - shownDifferences} more`] : []),
    ...fold(allowed).map((line) => `  accepted: ${line}`),
    ...unused.map(({ scenario, id = 'all' }) => `  no longer needed: the allowance of ${scenario} / ${id}`),
  ];
  return lines.length === 0 ? [] : [`\n${target}, ${suite}`, ...lines];
}

/** A line per check; one line for all checks that a scenario did not reach. */
function fold(differences: readonly Difference[]): string[] {
  return [...Map.groupBy(differences, ({ scenario }) => scenario)].flatMap(([scenario, some]) => {
    const absent = some.filter(({ here }) => here === 'absent');
    if (absent.length < 2) return some.map(lineOf);
    const came = some.filter(({ here }) => here !== 'absent').map(lineOf);
    return [`${scenario}: ${absent.length} checks of the direct run did not come`, ...came];
  });
}

function lineOf({ scenario, id, direct, here, message }: Difference): string {
  const why = message === undefined ? '' : ` (${message.slice(0, longestMessage)})`;
  return `${scenario} / ${id}: ${here}, directly ${direct}${why}`;
}

function row(cells: readonly (string | number)[]): string {
  return cells.map((cell, index) => pad(String(cell), index)).join('');
}

/** Text left-aligned, numbers right-aligned. */
function pad(cell: string, index: number): string {
  const width = widths[index] ?? 0;
  return index < 2 ? cell.padEnd(width) : cell.padStart(width);
}
