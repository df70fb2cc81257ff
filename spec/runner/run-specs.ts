// Runs many spec files, some at a time, prints one line for each, then every failure in full and every skip with its
// reason. It returns the totals and leaves the closing line and the exit code to the caller (spec/run.ts, spec/check.ts).

import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { answerVariable, SERVICE_NAMES, SupervisedServers } from '../helpers/services/supervised.ts';
import type { RunOptions } from './options.ts';
import { printDetails, printFlaky, printLine } from './report.ts';
import type { FileLimits, FileResult, Totals } from './result.ts';
import { retryFlaky } from './retry.ts';
import { SpecProcess } from './spec-process.ts';

const defaultTimeoutMs = 120_000;
/** Enough for a build of the image on a busy machine, and its tests. */
const systemTimeoutMs = 480_000;
/** Marks, in the head comment, a spec file that cannot share its process with others; the reason follows. */
const ownProcessMark = '@own-process';

/** Runs every chosen file and prints. Zero passed and zero failed means that nothing was run, which is a failure. */
export async function runSpecs(options: RunOptions): Promise<Totals> {
  const names = await findSpecs(options);
  const servers = new SupervisedServers();
  const results = new Map<string, FileResult>();
  const processes = new Set<SpecProcess>();
  const stopWatching = onInterrupt(processes);
  const waiting = [...names];

  const limitsOf = (name: string): FileLimits => ({
    timeoutMs: isSystem(name) ? systemTimeoutMs : defaultTimeoutMs,
    graceMs: options.graceMs,
  });
  const opened = (): SpecProcess => {
    const specProcess = new SpecProcess();
    processes.add(specProcess);
    return specProcess;
  };
  const closed = async (specProcess: SpecProcess | undefined): Promise<undefined> => {
    await specProcess?.close();
    if (specProcess) processes.delete(specProcess);
    return undefined;
  };
  const runAlone = async (name: string, note = ''): Promise<FileResult> => {
    const specProcess = opened();
    const result = await specProcess.run(join(options.root, name), limitsOf(name), true);
    printLine(name, result, note);
    await closed(specProcess);
    return result;
  };
  const worker = async (): Promise<void> => {
    let shared: SpecProcess | undefined;
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      if (await needsOwnProcess(options.root, name)) {
        results.set(name, await runAlone(name));
        continue;
      }
      shared ??= opened();
      const result = await shared.run(join(options.root, name), limitsOf(name));
      printLine(name, result);
      results.set(name, result);
      if (!shared.isUsable) shared = await closed(shared);
    }
    await closed(shared);
  };
  let flaky: ReadonlyMap<string, FileResult>;
  try {
    await findServers(options, names, servers);
    await Promise.all(Array.from({ length: options.jobs }, worker));
    flaky = await retryFlaky(names, results, (name) => runAlone(name, 'at its second attempt'));
  } finally {
    stopWatching();
    await servers.close();
  }
  printDetails(names, results);
  printFlaky(flaky);
  return total([...results.values()]);
}

/** Prints the closing line of a run, alone on its line. */
export function printClosingLine({ passed, failed, skipped }: Totals): void {
  process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`);
}

/** Whether the totals are a success: at least one test ran, and none failed. */
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

/** Finds the servers that files of the system tier need, concurrently, and passes their addresses to the processes of specs. */
async function findServers(
  { root }: RunOptions,
  names: readonly string[],
  servers: SupervisedServers,
): Promise<void> {
  const files = names.filter(isSystem).map((name) => readFile(join(root, name), 'utf8'));
  const texts = await Promise.all(files);
  const asked = SERVICE_NAMES.filter((service) => texts.some((text) => text.includes(`${service}()`)));
  await Promise.all(
    asked.map(async (service) => {
      process.env[answerVariable(service)] = JSON.stringify(await servers.find(service));
    }),
  );
}

function isSystem(name: string): boolean {
  return name.startsWith('system/');
}

async function needsOwnProcess(root: string, name: string): Promise<boolean> {
  if (isSystem(name)) return true;
  const head = (await readFile(join(root, name), 'utf8')).slice(0, 2_000);
  return head.includes(ownProcessMark);
}

/** The spec processes lead separate groups and do not get Ctrl-C: an interrupted run ends them itself. */
function onInterrupt(processes: ReadonlySet<SpecProcess>): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const stop = (signal: NodeJS.Signals): void => {
    for (const specProcess of processes) specProcess.kill();
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
