// The programs that a conformance run starts: the suites, and HTTP instances of the fixture. Each has a deadline and is ended.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Started, startNode } from '../../bench/children.ts';
import { type EverythingOptions, everythingProgram } from '../fixtures/everything-server.ts';
import { type Check, readChecks } from './checks.ts';
import type { ClientSuite, ConformanceSuite } from './suites.ts';

/** Longest time of a whole suite, in ms; directly it takes 3 s. Missing checks then count as differences. */
const suiteMs = 60_000;
/** The same for one scenario of a client, above the client's own limit; the longest takes 2 s. */
const scenarioMs = 25_000;

const { resolve } = createRequire(import.meta.url);

/** Keeps the compiled code of programs that are started often, which saves a third of the work. */
export const QUICK_START = { NODE_COMPILE_CACHE: join(tmpdir(), 'stagedoor-compile-cache') };

/** The findings of a suite at one URL, or of one of its scenarios with a client. */
export interface Found {
  readonly checks: readonly Check[];
  readonly durationMs: number;
  /** Problems besides the checks, a line each. */
  readonly problems: readonly string[];
}

/** Runs one suite against a server. */
export function runSuite(suite: ConformanceSuite, url: string, stop: AbortSignal): Promise<Found> {
  return run(suite.package, ['server', '--url', url, ...suite.args], suiteMs, stop);
}

/** Runs a client, given by its command line, in one scenario: the URL of the scenario's server is appended. */
export function runScenario(
  suite: ClientSuite,
  scenario: string,
  command: readonly string[],
  stop: AbortSignal,
): Promise<Found> {
  const words = command.map((word) => (word.includes(' ') ? `"${word}"` : word)).join(' '); // it goes to a shell
  const args = ['client', '--command', words, '--scenario', scenario, ...suite.args];
  return run(suite.package, args, scenarioMs, stop);
}

async function run(
  name: ConformanceSuite['package'],
  args: readonly string[],
  withinMs: number,
  stop: AbortSignal,
): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-conformance-'));
  const startedAt = performance.now();
  try {
    const program = join(dirname(resolve(`${name}/package.json`)), 'dist/index.js');
    const env = { ...process.env, ...QUICK_START };
    const limits = { timeout: withinMs, killSignal: 'SIGKILL', signal: stop, maxBuffer: 64e6 } as const;
    const words = [program, ...args, '-o', folder];
    // Failed checks are results: only a premature end is a problem.
    const isCut = await promisify(execFile)(process.execPath, words, { ...limits, cwd: folder, env }).then(
      () => false,
      ({ killed, name }) => killed === true || name === 'AbortError',
    );
    const durationMs = performance.now() - startedAt;
    const problems = isCut ? [`cut after ${Math.round(durationMs / 1000)} s`] : [];
    return { checks: await readChecks(folder), durationMs, problems };
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Starts the fixture over HTTP on a free port, in a separate process. The caller stops it. */
export async function startFixture(options: EverythingOptions): Promise<FixtureProcess> {
  const { args } = everythingProgram(options);
  const { announced, pid, stop } = await startNode(
    [...args, '--http', '--port', '0'],
    /listening on (http\S+)/,
  );
  return { url: announced[1] ?? '', pid, stop };
}

/** A running instance of the fixture. */
export interface FixtureProcess extends Pick<Started, 'pid' | 'stop'> {
  readonly url: string;
}
