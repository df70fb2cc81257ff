// The client scenarios of the suites: the SDK's client at the scenario's server directly, then through one gateway, which is the
// server's client. A few scenarios run at a time: they mostly wait for programs to start.

import { join } from 'node:path';
import { type Check, eachOnce } from './checks.ts';
import { type Found, runScenario } from './children.ts';
import { type Endpoint, openGateway } from './harness.ts';
import type { Rows } from './rows.ts';
import { CLIENT_SUITES, type ClientEra, type ClientSuite } from './suites.ts';
import type { ClientTarget } from './targets.ts';

/** Scenarios that run at a time. */
const atOnce = 3;
const program = join(import.meta.dirname, 'client-through-gateway.ts');

/** The protocol of the client, and the gateway, if there is one between it and the scenario's server. */
interface Side {
  readonly speaks: ClientTarget['speaks'];
  readonly gateway?: string;
}

/** Runs every suite directly and with each target. */
export async function runClients(
  targets: readonly ClientTarget[],
  rows: Rows,
  stop: AbortSignal,
): Promise<void> {
  for (const suite of CLIENT_SUITES)
    await rows.runDirect('client-direct', suite, runOne(suite, { speaks: 'same' }, stop));
  if (targets.length === 0) return;
  const all = targets.flatMap(({ name, speaks, allowed }) =>
    CLIENT_SUITES.map((suite) => {
      const run = ({ url }: Endpoint) => runOne(suite, { speaks, gateway: url }, stop);
      return { target: name, suite, allowed, run };
    }),
  );
  await rows.run(all, openGateway);
}

/** Checks are counted once each, because the gateway makes requests of its own as well. */
async function runOne(suite: ClientSuite, side: Side, stop: AbortSignal): Promise<Found> {
  const startedAt = performance.now();
  const command = [process.execPath, program, ...argumentsOf(suite, side)];
  const waiting = [...suite.scenarios];
  const checks: Check[] = [];
  const problems: string[] = [];
  const work = async (): Promise<void> => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
      const ran = await runScenario(suite, scenario, command, stop);
      checks.push(...ran.checks);
      if (ran.checks.length === 0 && ran.problems.length === 0)
        problems.push(`${scenario}: no checks came of it`);
      problems.push(...ran.problems.map((problem) => `${scenario}: ${problem}`));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const durationMs = performance.now() - startedAt;
  return { checks: eachOnce(checks), durationMs, problems };
}

function argumentsOf({ era }: ClientSuite, { gateway, speaks }: Side): string[] {
  const spoken = { same: era, other: OTHER[era], api: 'api' }[speaks];
  return ['--speaks', spoken, ...(gateway === undefined ? [] : ['--gateway', gateway])];
}

const OTHER: Readonly<Record<ClientEra, ClientEra>> = { legacy: 'modern', modern: 'legacy' };
