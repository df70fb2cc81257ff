// Runs many spec files, some at a time, prints one line for each, then every failure in full and every skip with its
// reason. It returns the totals and leaves the closing line and the exit code to whoever asked (spec/run.ts, spec/check.ts).

import type { ChildProcess } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type { RunOptions } from './options.ts';
import { killGroup } from './processes.ts';
import { printDetails, printLine, printUnsteady } from './report.ts';
import type { FileResult, Totals } from './result.ts';
import { runFile } from './run-file.ts';
import { closeRunFolder, currentRunFolder } from './run-folder.ts';
import { giveSecondChance } from './second-chance.ts';

const defaultTimeoutMs = 120_000;
const longTimeoutMs = 300_000;

/** Runs every chosen file and prints. Zero passed and zero failed means that nothing was run, which is no success. */
export async function runSpecs(options: RunOptions): Promise<Totals> {
  const names = await findSpecs(options);
  const runFolder = currentRunFolder(process.env);
  const results = new Map<string, FileResult>();
  const running = new Set<ChildProcess>();
  const stopWatching = onInterrupt(running);
  const waiting = [...names];

  const runOne = async (name: string, note = ''): Promise<FileResult> => {
    const timeoutMs = options.timeoutMs ?? (isSystem(name) ? longTimeoutMs : defaultTimeoutMs);
    const limits = { timeoutMs, graceMs: options.graceMs };
    let child: ChildProcess | undefined;
    const result = await runFile(join(options.root, name), limits, (started) => {
      child = started;
      running.add(started);
    });
    if (child) running.delete(child);
    printLine(name, result, note);
    return result;
  };
  const worker = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      results.set(name, await runOne(name));
    }
  };
  let unsteady: ReadonlyMap<string, FileResult>;
  try {
    await Promise.all(Array.from({ length: options.jobs }, worker));
    unsteady = await giveSecondChance(names, results, (name) => runOne(name, 'at its second attempt'));
  } finally {
    stopWatching();
    // A runner that a spec started shares the folder of the runner above it.
    if (runFolder.ownerPid === process.pid) await closeRunFolder(runFolder);
  }
  printDetails(names, results);
  printUnsteady(unsteady);
  return total([...results.values()]);
}

/** Prints the line every run closes with, alone on its line. */
export function printClosingLine({ passed, failed, skipped }: Totals): void {
  process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`);
}

/** Whether such totals are a success: something ran and nothing failed. */
export function isSuccess({ passed, failed }: Totals): boolean {
  return failed === 0 && passed > 0;
}

/**
 * The chosen spec files, with `/` on every system; those of the system tier first, because they take longest. Without a filter
 * that tier (real programs, servers, browsers, containers) is left out.
 */
async function findSpecs({ root, filters }: RunOptions): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.spec.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((name) => filters.length === 0 || filters.some((filter) => `spec/${name}`.includes(filter)))
    .filter((name) => filters.length > 0 || !isSystem(name));
  const rank = (name: string): number => (isSystem(name) ? 0 : 1);
  return names.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

function isSystem(name: string): boolean {
  return name.startsWith('system/');
}

/** The spec processes lead groups of their own and do not hear Ctrl-C: an interrupted run ends them itself. */
function onInterrupt(running: ReadonlySet<ChildProcess>): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const stop = (signal: NodeJS.Signals): void => {
    for (const child of running) killGroup(child);
    process.stderr.write(`\ninterrupted by ${signal}\n`);
    process.exit(130);
  };
  for (const signal of signals) process.on(signal, stop);
  return () => {
    for (const signal of signals) process.off(signal, stop);
  };
}

function total(results: readonly FileResult[]): Totals {
  const sum = (pick: (result: FileResult) => number): number =>
    results.reduce((so, result) => so + pick(result), 0);
  return {
    passed: sum((result) => result.passed),
    failed: sum((result) => result.failed),
    skipped: sum((result) => result.skipped.length),
  };
}
