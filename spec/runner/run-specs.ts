// Runs many spec files, some at a time, prints one line for each, then every failure in full and every skip with its
// reason. It returns the totals and leaves the closing line and the exit code to the caller (spec/run.ts, spec/check.ts).

import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { answerVariable, SERVICE_NAMES, SupervisedServers } from '../helpers/services/supervised.ts';
import { buildProgram } from './built-program.ts';
import type { RunOptions } from './options.ts';
import { printDetails, printFlaky, printLine, printSlowest } from './report.ts';
import type { FileLimits, FileResult, Totals } from './result.ts';
import { retryFlaky } from './retry.ts';
import { SpecProcess } from './spec-process.ts';

/** Of a file; its tests have their own. A busy machine gives a file a tenth of its usual share of the processor. */
const defaultTimeoutMs = 300_000;
/** Enough for a build of the image on a busy machine, and its tests. */
const systemTimeoutMs = 480_000;
/** Marks, in the head comment, a spec file that cannot share its process with others; the reason follows. */
const ownProcessMark = '@own-process';
/** In the text of a spec file. The longest says whether it may take more than is usual. */
const timeLimits = /timeoutMs: (\d[\d_]*)/g;

/** Runs every chosen file and prints. Zero passed and zero failed means that nothing was run, which is a failure. */
export async function runSpecs(options: RunOptions): Promise<Totals> {
  const files = await findSpecs(options);
  const names = files.map(({ name }) => name);
  const servers = new SupervisedServers();
  const results = new Map<string, FileResult>();
  const processes = new Set<SpecProcess>();
  const stopWatching = onInterrupt(processes);
  const waiting = [...files];

  const limitsOf = (file: SpecFile): FileLimits => ({
    timeoutMs: Math.max(isSystem(file) ? systemTimeoutMs : defaultTimeoutMs, 2 * longestTestMs(file)),
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
  const runAlone = async (file: SpecFile, note = ''): Promise<FileResult> => {
    const specProcess = opened();
    const result = await specProcess.run(join(options.root, file.name), limitsOf(file), true);
    printLine(file.name, result, note);
    await closed(specProcess);
    return result;
  };
  const worker = async (): Promise<void> => {
    let shared: SpecProcess | undefined;
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const { name } = file;
      if (needsOwnProcess(file)) {
        results.set(name, await runAlone(file));
        continue;
      }
      shared ??= opened();
      const result = await shared.run(join(options.root, name), limitsOf(file));
      printLine(name, result);
      results.set(name, result);
      if (!shared.isUsable) shared = await closed(shared);
    }
    await closed(shared);
  };
  let flaky: ReadonlyMap<string, FileResult>;
  try {
    await Promise.all([findServers(files, servers), files.some(isSystem) && buildProgram()]);
    await Promise.all(Array.from({ length: options.jobs }, worker));
    flaky = await retryFlaky(files, results, (file) => runAlone(file, 'at its second attempt'));
  } finally {
    stopWatching();
    await servers.close();
  }
  printSlowest(results);
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

/** A chosen spec file. */
interface SpecFile {
  /** Below the root, with `/` on every system. */
  readonly name: string;
  readonly text: string;
}

/**
 * The chosen spec files; those of the system tier first, because they take longest. Without a filter that tier (real programs, servers,
 * browsers, containers) is left out.
 */
async function findSpecs({ root, filters, isSystemOnly, shard }: RunOptions): Promise<SpecFile[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.spec.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((name) => filters.length === 0 || filters.some((filter) => `spec/${name}`.includes(filter)))
    .filter((name) => (isSystemOnly ? isSystem({ name }) : filters.length > 0 || !isSystem({ name })))
    .sort();
  const chosen = names.filter((_name, at) => shard === undefined || at % shard.count === shard.index - 1);
  if (shard !== undefined)
    process.stdout.write(`shard ${shard.index}/${shard.count}: ${chosen.length} of ${names.length} files\n`);
  const files = await Promise.all(
    chosen.map(async (name) => ({ name, text: await readFile(join(root, name), 'utf8') })),
  );
  const rank = (file: SpecFile): number => (isSystem(file) ? 0 : 1);
  return files.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

/** 0 for a file whose tests have the usual time limit. */
function longestTestMs({ text }: SpecFile): number {
  return Math.max(0, ...[...text.matchAll(timeLimits)].map(([, ms = '']) => Number(ms.replaceAll('_', ''))));
}

/** Finds the servers that files of the system tier need, concurrently, and passes their addresses to the processes of specs. */
async function findServers(files: readonly SpecFile[], servers: SupervisedServers): Promise<void> {
  const texts = files.filter(isSystem).map(({ text }) => text);
  const asked = SERVICE_NAMES.filter((service) => texts.some((text) => text.includes(`${service}()`)));
  await Promise.all(
    asked.map(async (service) => {
      process.env[answerVariable(service)] = JSON.stringify(await servers.find(service));
    }),
  );
}

function isSystem({ name }: Pick<SpecFile, 'name'>): boolean {
  return name.startsWith('system/');
}

function needsOwnProcess(file: SpecFile): boolean {
  return isSystem(file) || file.text.slice(0, 2_000).includes(ownProcessMark);
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
