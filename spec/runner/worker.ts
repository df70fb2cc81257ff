// The process in which spec files run: takes one at a time over IPC, runs its suites, and reports the results and whether the
// process is as clean as before, so that the next file may run in it. It decides nothing about time limits or printing.
// uvu's own `exec` is not used: it drops hook errors and returns totals as coloured text.

import { readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { RunRequest, WorkerMessage } from './messages.ts';
import { registry, type SkippedTest } from './registry.ts';

/** What uvu queues for each `.run()`: drawn errors (or true), passed, skipped, total. */
type QueuedSuite = () => Promise<[string | true, number, number, number]>;

// A short file spends most of its time loading its imports.
const { keepCompiledCode } = await import(new URL('../../bin/compile-cache.mjs', import.meta.url).href);
keepCompiledCode();
const { watchAnswers } = await import('../helpers/api/watch-answers.ts');

// Taken before a spec can replace them with simulated ones.
const { setTimeout: startTimer, clearTimeout: stopTimer, setImmediate: startImmediate } = globalThis;
/** Signals and errors for which a file may not leave a listener behind. */
const watchedEvents = ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection'] as const;

// The protocol of uvu's own command line: with UVU_DEFER set, `.run()` only fills the queue.
Object.assign(globalThis, { UVU_DEFER: true, UVU_INDEX: 0 });
registry.adopted = true;
registry.onProgress = (progress) => send({ kind: 'progress', ...progress });
process.on('uncaughtException', (error) =>
  send({ kind: 'uncaught', text: `uncaught exception: ${describe(error)}` }),
);
process.on('unhandledRejection', (reason) =>
  send({ kind: 'uncaught', text: `unhandled rejection: ${describe(reason)}` }),
);
const undocumented = new Set<string>();
const answersAreChecked = watchAnswers((issue) => undocumented.add(issue));

let passed = 0;
let failed = 0;
let skipped = 0;
let failures: string[] = [];
const before = processState();

process.on('message', (message: RunRequest) => {
  // While a file runs, only the file keeps the process alive: a promise that never settles ends it, and shows.
  process.channel?.unref();
  void runFile(message).then((isReusable) => send({ kind: 'idle', isReusable }));
});

// The runner has no more files, or is gone.
process.once('disconnect', () => process.exit());

/** Runs one file, and waits until the process is idle. Reports whether another file may run in it. */
async function runFile({ file, graceMs, isAlone }: RunRequest): Promise<boolean> {
  passed = failed = skipped = 0;
  failures = [];
  registry.reset();
  const queue: QueuedSuite[] = [];
  Object.assign(globalThis, { UVU_QUEUE: [queue] });
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    fail(`the file could not be loaded: ${describe(error)}`);
  }
  for (const run of queue) await runSuite(run);
  // Rejections of the last test surface one turn later.
  await new Promise<void>((resolve) => startImmediate(resolve));
  for (const problem of registry.problems()) fail(problem);
  await answersAreChecked();
  for (const issue of [...undocumented].slice(0, 20)) fail(`not as the API description says: ${issue}`);
  undocumented.clear();
  if (passed + failed + skipped === 0) fail('no test was run');
  if (process.env.CI === 'true') {
    for (const skip of registry.skipped.filter(({ reason }) => !reason)) {
      fail(`"${skip.suite} > ${skip.name}" is skipped without a reason, which CI=true does not allow`);
    }
  }
  if (process.exitCode) fail(`set the exit code to ${process.exitCode}`);
  process.exitCode = undefined;
  // A failed test explains the rest, and its process runs no other file.
  if (failed === 0 && !isAlone) for (const trace of restoreProcess()) fail(trace);
  send({ kind: 'finished', passed, failed, skipped: skippedTests(file), failures });
  await nothingIsOpen(graceMs);
  return !hasChildren();
}

async function runSuite(run: QueuedSuite): Promise<void> {
  try {
    const [errors, ran, set, total] = await run();
    passed += ran;
    // uvu counts a test that never ran (a throwing hook) as neither passed nor failed.
    failed += total - ran;
    skipped += set;
    if (errors !== true) failures.push(errors);
  } catch (error) {
    fail(`a suite broke off: ${describe(error)}`);
  }
}

function fail(text: string): void {
  failed += 1;
  failures.push(text);
}

/** The skips with their reasons; tests that `test.only` skips have no name, and are added up to the count. */
function skippedTests(file: string): SkippedTest[] {
  const nameless = Math.max(0, skipped - registry.skipped.length);
  const filler = { suite: file, name: 'a test', reason: 'set aside by test.only or by uvu itself' };
  return [...registry.skipped, ...Array.from({ length: nameless }, () => filler)];
}

/** The global state that a file can change for the files after it, apart from open resources. */
function processState() {
  return {
    environment: { ...process.env },
    folder: process.cwd(),
    listeners: watchedEvents.map((name) => process.listenerCount(name)),
  };
}

/** Restores environment and working folder; returns other changes that the file left, a clause each. */
function restoreProcess(): string[] {
  const found: string[] = [];
  process.chdir(before.folder);
  for (const name of Object.keys(process.env)) {
    if (before.environment[name] === undefined) delete process.env[name];
  }
  Object.assign(process.env, before.environment);
  if (globalThis.setTimeout !== startTimer) found.push('left the clock simulated');
  watchedEvents.forEach((name, index) => {
    if (process.listenerCount(name) > (before.listeners[index] ?? 0))
      found.push(`left a listener for ${name}`);
  });
  return found;
}

/** Waits until nothing keeps the process alive; reports the open resources when the grace time is over. */
function nothingIsOpen(graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const alarm = startTimer(() => send({ kind: 'lingering', resources: leftOpen() }), graceMs).unref();
    process.once('beforeExit', () => {
      stopTimer(alarm);
      process.channel?.ref();
      resolve();
    });
  });
}

/** The open resources by Node's count; the pipes are standard output, standard error and the IPC channel. */
function leftOpen(): string[] {
  return process.getActiveResourcesInfo().filter((resource) => resource !== 'PipeWrap');
}

/** Whether a process that a file started is alive. Only Linux shows this. */
function hasChildren(): boolean {
  try {
    return readdirSync('/proc/self/task').some(
      (thread) => readFileSync(`/proc/self/task/${thread}/children`, 'utf8') !== '',
    );
  } catch {
    return false; // no such folder here, or a thread that has just ended
  }
}

function describe(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

function send(message: WorkerMessage): void {
  process.send?.(message);
}
