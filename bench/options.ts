// The flags of the benchmark and their defaults.

import { parseArgs } from 'node:util';

export interface BenchmarkOptions {
  /** Rounds of the main case; fewer than six give quartiles instead of an interval. */
  readonly rounds: number;
  /** Rounds, or starts, of everything else. */
  readonly repeats: number;
  readonly isQuick: boolean;
  /** Measured time of one case in one round. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Connections of the main case besides 16, where its bars hold. */
  readonly otherConnections: readonly number[];
  /** Names of the paths and parts to measure. */
  readonly only: readonly string[];
  /** Whether the results are printed as JSON; everything else then goes to standard error. */
  readonly isJson: boolean;
  /** Whether results.json and docs/explanation/benchmarks.md are written: a full run does, a partial one only with --write. */
  readonly writes: boolean;
  /** Further instances whose memory is measured, and five times as many idle sessions. */
  readonly many: number;
}

/** Parts that `--quick` leaves out. */
const NOT_QUICK: readonly string[] = ['new-sessions', 'consoles', 'hop'];

/** Shown by --help. */
export const usageFor = (names: readonly string[]): string => `npm run bench -- [options]
  --quick            one round of 0.7 s, 16 connections only, without ${NOT_QUICK.join(', ')}; writes no files
  --rounds N         rounds of the main case, alternating (default 9)
  --seconds N        measured seconds per case and round (default 2)
  --connections A,B  further connections of the main case besides 16 (default 1,64,256)
  --only a,b         what to measure (default all): ${names.join(', ')}
  --write            write bench/results.json and docs/explanation/benchmarks.md even after a partial run
  --json             print the results as JSON
Exits with 1 when a bar is missed.
`;

/** Reads the command line; undefined for --help. Throws on unknown flags, names and bad numbers. */
export function readOptions(
  parameters: readonly string[],
  names: readonly string[],
): BenchmarkOptions | undefined {
  const { values } = parseArgs({
    args: [...parameters],
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      only: { type: 'string' },
      write: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const { quick, rounds, seconds, connections, only } = values;
  const isPartial = quick || [rounds, seconds, connections, only].some((value) => value !== undefined);
  return {
    rounds: positive('rounds', rounds ?? (quick ? '1' : '9')),
    repeats: quick ? 1 : 5,
    isQuick: quick,
    seconds: positive('seconds', seconds ?? (quick ? '0.7' : '2')),
    warmUpSeconds: quick ? 0.25 : 0.5,
    otherConnections: (connections ?? (quick ? '' : '1,64,256'))
      .split(',')
      .filter((count) => count !== '')
      .map((count) => positive('connections', count)),
    only:
      only === undefined
        ? names.filter((name) => !(quick && NOT_QUICK.includes(name)))
        : only.split(',').map((name) => known(name, names)),
    isJson: values.json,
    writes: values.write || !isPartial,
    many: quick ? 200 : 1_000,
  };
}

function known(name: string, names: readonly string[]): string {
  if (!names.includes(name)) throw new Error(`--only knows ${names.join(', ')}, not "${name}"`);
  return name;
}

function positive(name: string, value: string): number {
  const number = Number(value);
  if (!(number > 0)) throw new Error(`--${name} wants a positive number, not "${value}"`);
  return number;
}
