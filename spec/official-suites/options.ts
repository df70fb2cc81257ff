// The command line of the conformance run.

import { parseArgs } from 'node:util';

/** Which targets to run. */
export interface ConformanceOptions {
  /** Only targets whose name contains one of these; `direct` always runs, because the others are compared with it. */
  readonly only: readonly string[];
}

const usage = 'usage: npm run conformance -- [--only PART_OF_A_TARGET ...]';

/** Reads the arguments. Throws an Error with one line when they make no sense. */
export function readOptions(args: readonly string[], targets: readonly string[]): ConformanceOptions {
  const only = parse(args);
  const stranger = only.find((part) => !['direct', ...targets].some((name) => name.includes(part)));
  if (stranger !== undefined)
    throw new Error(`no target is called ${stranger}: direct, ${targets.join(', ')}`);
  return { only };
}

function parse(args: readonly string[]): readonly string[] {
  try {
    const only = { type: 'string', multiple: true, default: [] as string[] } as const;
    return parseArgs({ args: [...args], options: { only } }).values.only;
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}; ${usage}`);
  }
}
