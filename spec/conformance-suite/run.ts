// One conformance run: the suites against the fixture directly, then against each target, one after the other; then the
// clients. Bounded in time as a whole; when it is stopped, what it started is ended first.

import type { Check } from './checks.ts';
import { runSuite, startFixture } from './children.ts';
import { runClients } from './client-run.ts';
import type { Allowance } from './compare.ts';
import { openTarget } from './harness.ts';
import type { ConformanceOptions } from './options.ts';
import { comparedOutcome, directOutcome, type Outcome, type Ran } from './outcome.ts';
import { SUITES, type SuiteName } from './suites.ts';
import { CLIENT_TARGETS, type ClientTarget, TARGETS, type Target } from './targets.ts';

/** Longest the whole run may take, in ms. What was not reached then counts as a problem. */
const runMs = 600_000;

type DirectChecks = Map<SuiteName, readonly Check[]>;
type Tell = (outcome: Outcome) => void;

/** Runs what the options ask for; hands over each outcome as it comes. Stops, and still cleans up, at the signal. */
export async function runConformance(
  options: ConformanceOptions,
  tell: Tell,
  interrupt: AbortSignal,
): Promise<void> {
  const stop = AbortSignal.any([interrupt, AbortSignal.timeout(runMs)]);
  const targets = targetsOf(options);
  const clients = clientTargetsOf(options);
  const isDirect = options.url === undefined && options.only.some((part) => 'direct'.includes(part));
  if (targets.length > 0 || isDirect || options.url !== undefined)
    await runServers(options, targets, tell, stop);
  if (clients.length > 0 || isDirect) await runClients(clients, tell, stop);
}

/** The clients that are asked for. With `--url` none is. */
export function clientTargetsOf({ only, url }: ConformanceOptions): readonly ClientTarget[] {
  return url === undefined ? CLIENT_TARGETS.filter(({ name }) => isAskedFor(name, only)) : [];
}

/** The targets that are asked for. With `--url` none is. */
export function targetsOf({ only, url }: ConformanceOptions): readonly Target[] {
  return url === undefined ? TARGETS.filter(({ name }) => isAskedFor(name, only)) : [];
}

function isAskedFor(name: string, only: readonly string[]): boolean {
  return only.length === 0 || only.some((part) => name.includes(part));
}

async function runServers(
  options: ConformanceOptions,
  targets: readonly Target[],
  tell: Tell,
  stop: AbortSignal,
): Promise<void> {
  const suites =
    options.url === undefined && targets.length > 0
      ? new Set(targets.flatMap((target) => target.suites))
      : new Set(Object.values(SUITES).map(({ name }) => name));
  const direct = await runDirect(suites, tell, stop);
  if (options.url !== undefined) return runAt(options.url, 'url', [...suites], direct, [], tell, stop);
  for (const target of targets) await runTarget(target, direct, tell, stop);
}

async function runDirect(
  suites: ReadonlySet<SuiteName>,
  tell: Tell,
  stop: AbortSignal,
): Promise<DirectChecks> {
  const direct: DirectChecks = new Map();
  const fixture = await startFixture({});
  try {
    for (const suite of Object.values(SUITES).filter(({ name }) => suites.has(name))) {
      const ran = await run(suite.name, 'direct', fixture.url, stop);
      direct.set(suite.name, ran.checks);
      tell(directOutcome(ran));
    }
  } finally {
    await fixture.end();
  }
  return direct;
}

async function runTarget(target: Target, direct: DirectChecks, tell: Tell, stop: AbortSignal): Promise<void> {
  const { name, suites, allowed } = target;
  const open = new Set(suites);
  const tellAndCross = (outcome: Outcome): void => {
    open.delete(outcome.suite);
    tell(outcome);
  };
  try {
    stop.throwIfAborted();
    const endpoint = await openTarget(target);
    try {
      await runAt(endpoint.url, name, suites, direct, allowed, tellAndCross, stop);
    } finally {
      await endpoint.close();
    }
  } catch (error) {
    const problems = [error instanceof Error ? error.message : String(error)];
    const nothing = { target: name, checks: [], durationMs: 0, problems };
    for (const suite of open) {
      tell(comparedOutcome({ ...nothing, suite: SUITES[suite] }, direct.get(suite) ?? [], []));
    }
    // All suites ran, and it was the end that went wrong.
    const [first] = suites;
    if (open.size === 0 && first !== undefined)
      tell(comparedOutcome({ ...nothing, suite: SUITES[first] }, [], []));
  }
}

async function runAt(
  url: string,
  name: string,
  suites: readonly SuiteName[],
  direct: DirectChecks,
  allowed: readonly Allowance[],
  tell: Tell,
  stop: AbortSignal,
): Promise<void> {
  for (const suite of suites) {
    tell(comparedOutcome(await run(suite, name, url, stop), direct.get(suite) ?? [], allowed));
  }
}

async function run(suite: SuiteName, target: string, url: string, stop: AbortSignal): Promise<Ran> {
  const { checks, durationMs, isCut } = await runSuite(SUITES[suite], url, stop);
  const problems = isCut ? [`cut after ${Math.round(durationMs / 1000)} s`] : [];
  return { target, suite: SUITES[suite], checks, durationMs, problems };
}
