// Formats results for readers: the table, the list of bars, results.json and the part of
// docs/explanation/benchmarks.md between its markers. It measures nothing.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Bar } from './bars.ts';
import type { IdleSessions } from './idle-sessions.ts';
import type { Machine } from './machine.ts';
import type { PairResult } from './pairs.ts';
import type { Measurement } from './rounds.ts';
import type { Startup } from './startup.ts';

/** All results of one run; the content of bench/results.json. */
export interface Results {
  readonly date: string;
  readonly machine: Machine;
  readonly rounds: number;
  readonly seconds: number;
  readonly measurements: readonly Measurement[];
  readonly pairs: readonly PairResult[];
  readonly startup: Startup | null;
  readonly sessions: IdleSessions | null;
  readonly bars: readonly Bar[];
  /** Cases that could not be measured. The reasons are only printed: they may name folders of the machine. */
  readonly missing: readonly string[];
}

const resultsPath = fileURLToPath(new URL('results.json', import.meta.url));
const pagePath = fileURLToPath(new URL('../docs/explanation/benchmarks.md', import.meta.url));
const beginMarker = '<!-- results:begin -->';
const endMarker = '<!-- results:end -->';

const header = ['case', 'connections', 'requests/s', 'p50 ms', 'p99 ms', 'CPU us/call', 'RSS MB', 'failures'];

/** The figures as a Markdown table, padded so that it also reads well in a terminal. */
export function tableOf(measurements: readonly Measurement[]): string {
  const rows = measurements
    .toSorted((one, other) => one.connections - other.connections || (one.letter < other.letter ? -1 : 1))
    .map((one) => [
      `(${one.letter}) ${one.title}`,
      String(one.connections),
      Math.round(one.requestsPerSecond).toLocaleString('en-US'),
      one.p50Ms.toFixed(2),
      one.p99Ms.toFixed(2),
      one.cpuMicrosecondsPerCall?.toFixed(1) ?? '-',
      one.residentBytes === null ? '-' : String(Math.round(one.residentBytes / 1024 ** 2)),
      String(one.failures),
    ]);
  return markdownTable(header, rows);
}

/** The cost of authentication and limits, as a Markdown table. */
export function pairsOf(pairs: readonly PairResult[]): string {
  const rows = pairs.map(({ name, without, withIt, differences, cost, failures }) => [
    name,
    `(${withIt}) - (${without})`,
    Number.isNaN(cost.median) ? '-' : cost.median.toFixed(1),
    cost.interval === undefined ? '-' : cost.interval.map((end) => end.toFixed(1)).join(' to '),
    String(differences.length),
    String(failures),
  ]);
  const head = ['what is added', 'cases', 'CPU us/call', '95 % interval', 'pairs', 'failures'];
  return markdownTable(head, rows);
}

export function barsOf(bars: readonly Bar[]): string {
  const rows = bars.map((bar) => [bar.name, bar.limit, bar.figure, bar.verdict]);
  return markdownTable(['bar', 'asked for', 'found', 'verdict'], rows);
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

function sectionOf(results: Results): string {
  const { machine, startup } = results;
  const parts = [
    `Measured ${results.date.slice(0, 10)} on ${machine.cores} cores (${machine.cpu}), ${machine.memoryGigabytes} GB, ` +
      `${machine.operatingSystem}, Node ${machine.node}; load average before the run ${machine.loadBefore}. ` +
      `Medians of ${results.rounds} alternating rounds of ${results.seconds} s.`,
    tableOf(results.measurements),
    pairsOf(results.pairs),
    barsOf(results.bars),
  ];
  if (startup !== null) {
    const starts = startup.startsMs.map((ms) => Math.round(ms)).join(', ');
    parts.push(`Single starts without instances, in ms: ${starts}.`);
  }
  if (results.missing.length > 0) parts.push(`Not measured: ${results.missing.join('; ')}.`);
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
