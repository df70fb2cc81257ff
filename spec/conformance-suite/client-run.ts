// The client scenarios of the suites: the SDK's client at the scenario's server directly, then through one gateway that
// is the server's client. A few scenarios at a time: most of a scenario is waiting for programs to start.

import { join } from 'node:path';
import { type Check, eachOnce } from './checks.ts';
import { runScenario } from './children.ts';
import { openGateway } from './harness.ts';
import { comparedOutcome, directOutcome, type Outcome, type Ran } from './outcome.ts';
import { CLIENT_SUITES, type ClientEra, type ClientSuite } from './suites.ts';
import type { ClientTarget } from './targets.ts';

/** Scenarios that run at a time. */
const atOnce = 3;
const program = join(import.meta.dirname, 'client-through-gateway.ts');

type Tell = (outcome: Outcome) => void;
/** Which client, and what is between it and the scenario's server. */
interface Side {
  readonly target: string;
  readonly gateway?: string;
  readonly speaks: ClientTarget['speaks'];
}

/** Runs every suite directly and with each target; hands over each outcome as it comes. Never rejects. */
export async function runClients(
  targets: readonly ClientTarget[],
  tell: Tell,
  stop: AbortSignal,
): Promise<void> {
  const direct = new Map<ClientSuite, readonly Check[]>();
  for (const suite of CLIENT_SUITES) {
    const ran = await runOne(suite, { target: 'client-direct', speaks: 'same' }, stop);
    direct.set(suite, ran.checks);
    tell(directOutcome(ran));
  }
  if (targets.length > 0) await runThroughGateway(targets, direct, tell, stop);
}

async function runThroughGateway(
  targets: readonly ClientTarget[],
  direct: ReadonlyMap<ClientSuite, readonly Check[]>,
  tell: Tell,
  stop: AbortSignal,
): Promise<void> {
  const rows = targets.flatMap((target) => CLIENT_SUITES.map((suite) => ({ target, suite })));
  const tellOf = (ran: Ran, suite: ClientSuite, { allowed }: ClientTarget): void =>
    tell(comparedOutcome(ran, direct.get(suite) ?? [], allowed));
  let told = 0;
  try {
    stop.throwIfAborted();
    const gateway = await openGateway();
    try {
      for (const { target, suite } of rows) {
        const side = { target: target.name, speaks: target.speaks, gateway: gateway.url };
        tellOf(await runOne(suite, side, stop), suite, target);
        told += 1;
      }
    } finally {
      await gateway.close();
    }
  } catch (error) {
    const problems = [error instanceof Error ? error.message : String(error)];
    // All ran, and it was the end that went wrong: the last one has the problem.
    for (const { target, suite } of rows.slice(Math.min(told, rows.length - 1))) {
      tellOf({ target: target.name, suite, checks: [], durationMs: 0, problems }, suite, target);
    }
  }
}

/** Checks are counted once each, because the gateway asks on its own behalf as well. */
async function runOne(suite: ClientSuite, side: Side, stop: AbortSignal): Promise<Ran> {
  const startedAt = performance.now();
  const command = [process.execPath, program, ...argumentsOf(suite, side)];
  const waiting = [...suite.scenarios];
  const checks: Check[] = [];
  const problems: string[] = [];
  const work = async (): Promise<void> => {
    for (let scenario = waiting.shift(); scenario !== undefined; scenario = waiting.shift()) {
      const ran = await runScenario(suite, scenario, command, stop);
      checks.push(...ran.checks);
      if (ran.isCut) problems.push(`${scenario}: cut after ${Math.round(ran.durationMs / 1000)} s`);
      else if (ran.checks.length === 0) problems.push(`${scenario}: no checks came of it`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const durationMs = performance.now() - startedAt;
  return { target: side.target, suite, checks: eachOnce(checks), durationMs, problems };
}

function argumentsOf({ era }: ClientSuite, { gateway, speaks }: Side): string[] {
  const spoken = { same: era, other: OTHER[era], api: 'api' }[speaks];
  return ['--speaks', spoken, ...(gateway === undefined ? [] : ['--gateway', gateway])];
}

const OTHER: Readonly<Record<ClientEra, ClientEra>> = { legacy: 'modern', modern: 'legacy' };
