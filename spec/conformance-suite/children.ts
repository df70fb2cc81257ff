// The programs a conformance run starts: the suites themselves, and HTTP instances of the fixture. Every one of them has
// a deadline and is ended.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type EverythingOptions, everythingProgram } from '../fixtures/everything-server.ts';
import { type Check, readChecks } from './checks.ts';
import type { ConformanceSuite } from './suites.ts';

/** Longest a suite may take as a whole, in ms; directly it takes 3 s. What is missing then counts as a difference. */
const suiteMs = 60_000;
/** Longest a fixture may take to listen, and to end after SIGTERM, in ms. */
const startMs = 15_000;
const endMs = 3_000;

const { resolve } = createRequire(import.meta.url);

/** What a suite found at one URL. */
export interface SuiteRun {
  readonly checks: readonly Check[];
  readonly durationMs: number;
  /** The deadline ended it. */
  readonly isCut: boolean;
}

/** Runs one suite against a server. */
export async function runSuite(suite: ConformanceSuite, url: string, stop: AbortSignal): Promise<SuiteRun> {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-conformance-'));
  const startedAt = performance.now();
  try {
    const program = join(dirname(resolve(`${suite.package}/package.json`)), 'dist/index.js');
    const args = [program, 'server', '--url', url, ...suite.args, '-o', folder];
    const child = spawn(process.execPath, args, { stdio: 'ignore', cwd: folder });
    const isCut = await endsInTime(child, suiteMs, stop);
    return { checks: await readChecks(folder), durationMs: performance.now() - startedAt, isCut };
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** An instance of the fixture in a process of its own. End it. */
export interface FixtureProcess {
  readonly url: string;
  end(): Promise<void>;
}

/** Starts the fixture over HTTP on a free port. */
export async function startFixture(options: EverythingOptions): Promise<FixtureProcess> {
  const { command, args } = everythingProgram(options);
  const child = spawn(command, [...args, '--http', '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    await endsInTime(child, endMs, new AbortController().signal);
  };
  try {
    const lines = createInterface({ input: child.stdout });
    const [line] = await once(lines, 'line', { signal: AbortSignal.timeout(startMs) });
    const url = /http\S+/.exec(String(line))?.[0];
    if (url === undefined) throw new Error(`the fixture says no URL: ${line}`);
    return { url, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Waits for the end; kills it when the time is over or the run is stopped. Whether it had to be killed. */
async function endsInTime(child: ChildProcess, withinMs: number, stop: AbortSignal): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return false;
  const ended = once(child, 'close');
  const deadline = AbortSignal.any([stop, AbortSignal.timeout(withinMs)]);
  const kill = (): void => void child.kill('SIGKILL');
  if (deadline.aborted) kill();
  else deadline.addEventListener('abort', kill, { once: true });
  await ended;
  deadline.removeEventListener('abort', kill);
  return deadline.aborted;
}
