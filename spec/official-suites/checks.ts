// Reads the results of a conformance run (`-o DIR`) into one list: a folder per scenario with a checks.json, and the output of
// the client, if there was one.

import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One check as a scenario reported it. The same id and name may come several times. */
export interface Check {
  readonly scenario: string;
  readonly id: string;
  readonly name: string;
  /** SUCCESS, FAILURE, WARNING, SKIPPED or INFO. */
  readonly status: string;
  /** The fault, in the words of the suite. */
  readonly message: string | undefined;
}

/** Every check below the folder; an aborted scenario has none. Throws for a file in an unexpected form. */
export async function readChecks(folder: string): Promise<Check[]> {
  const checks: Check[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const scenario = scenarioOf(name);
    if (scenario === undefined) continue;
    const file = join(folder, name, 'checks.json');
    if (!existsSync(file)) continue;
    const output = join(folder, name, 'stdout.txt');
    if (existsSync(output)) checks.push(clientCheck(scenario, await readFile(output, 'utf8')));
    const content: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (!Array.isArray(content)) throw new Error(`${name}/checks.json is not a list`);
    for (const entry of content) checks.push(checkOf(scenario, entry));
  }
  return checks;
}

/** The last line of a client that succeeded. */
export const DONE = 'done';

/** Scenarios check only the server's side: the client's verdict on the answers is a check, too. */
function clientCheck(scenario: string, output: string): Check {
  const last = output.trim().split('\n').at(-1) ?? '';
  const isDone = last === DONE;
  const result = { status: isDone ? 'SUCCESS' : 'FAILURE', message: isDone ? undefined : last };
  return { scenario, id: 'client', name: 'client', ...result };
}

/** Each check once per status: the number of repetitions depends on the number of requests. */
export function eachOnce(checks: readonly Check[]): Check[] {
  const keyOf = ({ scenario, id, name, status }: Check) => JSON.stringify([scenario, id, name, status]);
  return [...new Map(checks.map((check) => [keyOf(check), check])).values()];
}

/** `server-tools-list-2026-11-20T11-55-03-317Z` holds the checks of `tools-list`; those of clients have no prefix. */
function scenarioOf(folderName: string): string | undefined {
  return /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(folderName)?.[1];
}

/** The number of checks with this status. */
export function count(checks: readonly Check[], status: string): number {
  return checks.filter((check) => check.status === status).length;
}

function checkOf(scenario: string, entry: unknown): Check {
  const { id, name, status, errorMessage } = Object(entry);
  if (typeof id !== 'string' || typeof status !== 'string') {
    throw new Error(`a check of ${scenario} has no id or no status: ${JSON.stringify(entry).slice(0, 200)}`);
  }
  const message = typeof errorMessage === 'string' ? errorMessage : undefined;
  return { scenario, id, name: String(name ?? id), status, message };
}
