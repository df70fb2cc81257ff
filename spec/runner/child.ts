// The process in which one spec file runs: imports the file, runs what it handed to uvu, and reports over IPC.
// It is started by runner/run-file.ts and decides nothing about time limits, exit codes or printing.
// uvu's own `exec` is not used: it forgets hook errors and answers with totals in coloured text.

import { pathToFileURL } from 'node:url';
import { ledger, type SkippedTest } from './ledger.ts';
import type { ChildMessage } from './messages.ts';

/** What uvu queues for each `.run()`: drawn errors (or true), passed, skipped, total. */
type QueuedSuite = () => Promise<[string | true, number, number, number]>;

// Most of the time of a short file is that of loading what it imports.
const { keepCompiledCode } = await import(new URL('../../bin/compile-cache.mjs', import.meta.url).href);
keepCompiledCode();
const { watchAnswers } = await import('../helpers/watch-answers.ts');

// Taken before the spec can replace them with simulated ones.
const { setTimeout: startTimer, setImmediate: startImmediate } = globalThis;

const [file = '', graceMs = '3000'] = process.argv.slice(2);
const queue: QueuedSuite[] = [];
// The protocol of uvu's own command line: with UVU_DEFER set, `.run()` only fills the queue.
Object.assign(globalThis, { UVU_DEFER: true, UVU_INDEX: 0, UVU_QUEUE: [queue] });

ledger.adopted = true;
ledger.onProgress = (progress) => say({ kind: 'progress', ...progress });
process.on('uncaughtException', (error) =>
  say({ kind: 'stray', text: `uncaught exception: ${describe(error)}` }),
);
process.on('unhandledRejection', (reason) =>
  say({ kind: 'stray', text: `unhandled rejection: ${describe(reason)}` }),
);

const failures: string[] = [];
const strangeAnswers = new Set<string>();
const answersAreChecked = watchAnswers((finding) => strangeAnswers.add(finding));
let passed = 0;
let failed = 0;
let skipped = 0;

try {
  await import(pathToFileURL(file).href);
} catch (error) {
  fail(`the file could not be loaded: ${describe(error)}`);
}
for (const run of queue) await runSuite(run);
// Rejections of the last test surface one turn later.
await new Promise<void>((resolve) => startImmediate(resolve));
for (const problem of ledger.problems()) fail(problem);
await answersAreChecked();
for (const finding of [...strangeAnswers].slice(0, 20)) fail(`not as the API description says: ${finding}`);
if (passed + failed + skipped === 0) fail('no test was run');
if (process.env.CI === 'true') {
  for (const skip of ledger.skipped.filter(({ reason }) => !reason)) {
    fail(`"${skip.suite} > ${skip.name}" is skipped without a reason, which CI=true does not allow`);
  }
}
say({ kind: 'finished', passed, failed, skipped: skippedTests(), failures });

// Not referenced, so it only fires when something else keeps the process alive.
startTimer(
  () => say({ kind: 'lingering', resources: process.getActiveResourcesInfo() }),
  Number(graceMs),
).unref();

async function runSuite(run: QueuedSuite): Promise<void> {
  try {
    const [errors, ran, set, total] = await run();
    passed += ran;
    // uvu counts a test that never got its turn (a throwing hook) as neither passed nor failed.
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

/** The skips with their reasons; what `test.only` set aside has no name and is filled up to the count. */
function skippedTests(): SkippedTest[] {
  const nameless = Math.max(0, skipped - ledger.skipped.length);
  const filler = { suite: file, name: 'a test', reason: 'set aside by test.only or by uvu itself' };
  return [...ledger.skipped, ...Array.from({ length: nameless }, () => filler)];
}

function describe(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

function say(message: ChildMessage): void {
  process.send?.(message);
}
