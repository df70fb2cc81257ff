// Formats results for readers: the table, the list of bars, results.json and the part of
// docs/explanation/benchmarks.md between its markers. It measures nothing.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Figure, Verdict } from './figures.ts';
import { type Machine, machineLine } from './machine.ts';
import type { BenchmarkOptions } from './options.ts';
import { OTHER_ROUNDS } from './paths.ts';
import type { Measurement } from './rounds.ts';

/** All results of one run; the content of bench/results.json. */
interface Results {
  readonly date: string;
  readonly machine: Machine;
  readonly options: BenchmarkOptions;
  readonly measurements: readonly Measurement[];
  readonly figures: readonly Figure[];
  readonly verdicts: readonly Verdict[];
  /** Parts that could not be measured. The reasons are only printed: they may name folders of the machine. */
  readonly missing: readonly string[];
}

const resultsPath = fileURLToPath(new URL('results.json', import.meta.url));
const pagePath = fileURLToPath(new URL('../docs/explanation/benchmarks.md', import.meta.url));
const beginMarker = '<!-- results:begin -->';
const endMarker = '<!-- results:end -->';

const header = ['case', 'connections', 'requests/s', 'p50 ms', 'p99 ms', 'CPU us/call', 'RSS MB', 'failures'];

/** The single cases as a Markdown table, padded so that it also reads well in a terminal. */
export function measurementsTable(measurements: readonly Measurement[]): string {
  const rows = measurements.map((one) => [
    one.title,
    String(one.connections),
    Math.round(one.requestsPerSecond).toLocaleString('en-US'),
    one.p50Ms.toFixed(2),
    one.p99Ms.toFixed(2),
    one.cpuMicrosecondsPerCall?.toFixed(1) ?? '-',
    one.residentBytes === null ? '-' : String(Math.round(one.residentBytes / 1e6)),
    String(one.failures),
  ]);
  return markdownTable(header, rows);
}

/** The figures and their bars, as a Markdown table. */
export function figuresTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ name, bar, found, interval, rounds, verdict }) => [
    ...[name, bar, found, interval],
    String(rounds),
    verdict,
  ]);
  return markdownTable(['figure', 'asked for', 'found', 'interval', 'values', 'verdict'], rows);
}

/** Writes results.json and replaces the results in docs/explanation/benchmarks.md. Its hand-written text is kept. */
export async function writeResults(results: Results): Promise<void> {
  await writeFile(resultsPath, `${JSON.stringify(results, rounded, 2)}\n`);
  if (!existsSync(pagePath)) throw new Error('docs/explanation/benchmarks.md does not exist');
  const page = await readFile(pagePath, 'utf8');
  const begin = page.indexOf(beginMarker);
  const end = page.indexOf(endMarker);
  if (begin === -1 || end < begin)
    throw new Error(`docs/explanation/benchmarks.md lacks ${beginMarker} … ${endMarker}`);
  const section = `${beginMarker}\n\n${sectionOf(results)}\n\n`;
  await writeFile(pagePath, page.slice(0, begin) + section + page.slice(end));
}

/** Rounds for readability: no figure is known to more than three decimals. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1000) / 1000 : value;
}

function sectionOf({ date, machine, options, measurements, verdicts, missing }: Results): string {
  const parts = [
    `Measured ${date.slice(0, 10)}: ${machineLine(machine)}.\nMedians of ${options.rounds} alternating rounds of ` +
      `${options.seconds} s at 16 connections, of ${OTHER_ROUNDS} rounds at others.`,
    figuresTable(verdicts),
    measurementsTable(measurements),
  ];
  if (missing.length > 0) parts.push(`Not measured: ${missing.join('; ')}.`);
  return parts.join('\n\n');
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => (row[column] ?? '').length)),
  );
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [
    lineOf(head),
    `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`,
    ...rows.map(lineOf),
  ].join('\n');
}
