// The command line of the conformance run.

import { parseArgs } from 'node:util';

/** Which targets to run, and how to report. */
export interface ConformanceOptions {
  /** Only targets whose name contains one of these; `direct` always runs, because the others are compared with it. */
  readonly only: readonly string[];
  /** Any other MCP endpoint, to be compared with the dual-era fixture in every suite, instead of the targets. */
  readonly url: string | undefined;
  /** One JSON document on standard output instead of the table. */
  readonly json: boolean;
}

const usage = 'usage: npm run conformance -- [--only PART_OF_A_TARGET ...] [--url URL] [--json]';

/** Reads the arguments. Throws an Error with one line when they make no sense. */
export function readOptions(args: readonly string[], targets: readonly string[]): ConformanceOptions {
  const { only, url, json } = parse(args);
  const stranger = only.find((part) => !['direct', ...targets].some((name) => name.includes(part)));
  if (stranger !== undefined)
    throw new Error(`no target is called ${stranger}: direct, ${targets.join(', ')}`);
  return { only, url, json };
}

function parse(args: readonly string[]): ConformanceOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string', multiple: true, default: [] },
        url: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    });
    return { only: values.only, url: values.url, json: values.json };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}; ${usage}`);
  }
}
