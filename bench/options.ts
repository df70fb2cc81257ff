// The flags of the benchmark and their defaults.

import { parseArgs } from 'node:util';

export interface BenchmarkOptions {
  readonly rounds: number;
  /** Rounds of each pair (pairs.ts); fewer than six give no interval. */
  readonly pairRounds: number;
  /** Measured time of one case at one concurrency in one round. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly connections: readonly number[];
  /** Letters of the cases to run. */
  readonly only: readonly string[];
  /** Exit with 1 when a bar is missed or could not be checked. */
  readonly isStrict: boolean;
  /** Whether results.json and docs/explanation/benchmarks.md are written: a full run does, a partial one only with --write. */
  readonly writes: boolean;
  readonly coldStarts: number;
}

/** Shown by --help. */
export const usage = `npm run bench -- [options]
  --quick              1 round of 1 s at 16 connections; writes no files
  --rounds N           rounds per case, alternating (default 5)
  --pair-rounds N      rounds per pair, alternating (default 15; 0 for none)
  --seconds N          measured seconds per case, concurrency and round (default 3)
  --connections A,B    concurrencies (default 1,16,64,256)
  --only a,b           cases to run: a to o (default all)
  --write              write bench/results.json and docs/explanation/benchmarks.md even after a partial run
  --strict             exit 1 when a bar is missed or could not be checked
`;

const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o'];

/** Reads the command line; undefined for --help. Throws on unknown flags and bad numbers. */
export function readOptions(parameters: readonly string[]): BenchmarkOptions | undefined {
  const { values } = parseArgs({
    args: [...parameters],
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      'pair-rounds': { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      only: { type: 'string' },
      write: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const { quick } = values;
  const isPartial = Object.entries(values).some(
    ([name, value]) => name !== 'strict' && name !== 'write' && value !== false,
  );
  return {
    rounds: positive('rounds', values.rounds ?? (quick ? '1' : '5')),
    pairRounds: count('pair-rounds', values['pair-rounds'] ?? (quick ? '1' : '15')),
    seconds: positive('seconds', values.seconds ?? (quick ? '1' : '3')),
    warmUpSeconds: 0.5,
    connections: (values.connections ?? (quick ? '16' : '1,16,64,256'))
      .split(',')
      .map((count) => positive('connections', count)),
    only: values.only === undefined ? letters : values.only.split(',').map(knownLetter),
    isStrict: values.strict,
    writes: values.write || !isPartial,
    coldStarts: quick ? 1 : 5,
  };
}

function knownLetter(letter: string): string {
  if (!letters.includes(letter)) throw new Error(`--only knows ${letters.join(', ')}, not "${letter}"`);
  return letter;
}

function count(name: string, value: string): number {
  const number = Number(value);
  if (!(Number.isInteger(number) && number >= 0)) throw new Error(`--${name} wants a count, not "${value}"`);
  return number;
}

function positive(name: string, value: string): number {
  const number = Number(value);
  if (!(number > 0)) throw new Error(`--${name} wants a positive number, not "${value}"`);
  return number;
}
