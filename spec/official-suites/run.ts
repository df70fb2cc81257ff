// One conformance run: the suites against the fixture directly, then against each target in sequence; beside them the clients, because
// the former keep one core busy. The whole run has a time limit; when it is stopped, its programs are ended first.

import { runSuite, startFixture } from './children.ts';
import { runClients } from './client-run.ts';
import { type OpenTarget, openTarget } from './harness.ts';
import type { ConformanceOptions } from './options.ts';
import { type Reports, type Row, Rows } from './rows.ts';
import { SUITES } from './suites.ts';
import { CLIENT_TARGETS, type ClientTarget, TARGETS, type Target } from './targets.ts';

/** Longest time of the whole run, in ms. Rows that were not reached then count as problems. */
const runMs = 600_000;

/** Runs the rows of the options; reports each outcome when it is ready. Stops, and still cleans up, at the signal. */
export async function runConformance(
  options: ConformanceOptions,
  reports: Reports,
  interrupt: AbortSignal,
): Promise<void> {
  const stop = AbortSignal.any([interrupt, AbortSignal.timeout(runMs)]);
  const rows = new Rows(reports, stop);
  const targets = targetsOf(options);
  const clients = clientTargetsOf(options);
  const isDirect = options.only.some((part) => 'direct'.includes(part));
  await Promise.all([
    targets.length > 0 || isDirect ? runServers(targets, rows, stop) : undefined,
    clients.length > 0 || isDirect ? runClients(clients, rows, stop) : undefined,
  ]);
}

/** The selected clients. */
export function clientTargetsOf({ only }: ConformanceOptions): readonly ClientTarget[] {
  return CLIENT_TARGETS.filter(({ name }) => isSelected(name, only));
}

/** The selected targets. */
export function targetsOf({ only }: ConformanceOptions): readonly Target[] {
  return TARGETS.filter(({ name }) => isSelected(name, only));
}

function isSelected(name: string, only: readonly string[]): boolean {
  return only.length === 0 || only.some((part) => name.includes(part));
}

/** At the fixture directly, then at each target. */
async function runServers(targets: readonly Target[], rows: Rows, stop: AbortSignal): Promise<void> {
  const asked = new Set(targets.flatMap(({ suites }) => suites));
  const suites = Object.values(SUITES).filter(({ name }) => targets.length === 0 || asked.has(name));
  const fixture = await startFixture({});
  try {
    for (const suite of suites) await rows.runDirect('direct', suite, runSuite(suite, fixture.url, stop));
  } finally {
    await fixture.stop();
  }
  for (const target of targets) {
    const { name, allowed } = target;
    const all = target.doors.flatMap((door) =>
      target.suites.map((suiteName): Row<OpenTarget> => {
        const suite = SUITES[suiteName];
        const run = ({ doors }: OpenTarget) => runSuite(suite, doors[door], stop);
        return { target: door === 'template' ? name : `${name} ${door}`, suite, allowed, run };
      }),
    );
    await rows.run(all, () => openTarget(target));
  }
}
