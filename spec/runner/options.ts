// Reads the command line of the spec runner.

import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** Which files to run, and how. */
export interface RunOptions {
  /** Folder that holds the spec files. Default: the `spec` folder of this repository. */
  readonly root: string;
  /** Only files whose path contains one of these. Empty = all. */
  readonly filters: readonly string[];
  /** Only files of the system tier. */
  readonly isSystemOnly: boolean;
  /** How many files run at once. Default: one more than cores, because many of them wait most of the time. */
  readonly jobs: number;
  /** Longest a file may stay alive after its last test, in ms. Default 3 000. */
  readonly graceMs: number;
  /** Only every `count`-th of the files, from the `index`-th on (1 for the first). Undefined: all. */
  readonly shard: Shard | undefined;
}

/** One of `count` equal parts of the files, as other test runners have it. */
interface Shard {
  readonly index: number;
  readonly count: number;
}

const usage =
  'usage: npm run spec -- [part of a path ...] [--system] [--jobs N] [--shard K/N] [--grace SECONDS] [--root FOLDER]';

/** Reads the arguments. Throws an Error with one line when they make no sense. */
export function readOptions(args: readonly string[]): RunOptions {
  const { values, positionals } = parse(args);
  return {
    root: values.root ?? fileURLToPath(new URL('..', import.meta.url)),
    // With `/` as in the output, also on Windows.
    filters: positionals.map((filter) => filter.replaceAll('\\', '/')),
    isSystemOnly: values.system === true,
    jobs: Math.ceil(positive(values, 'jobs') ?? availableParallelism() + 1),
    graceMs: (positive(values, 'grace') ?? 3) * 1000,
    shard: values.shard === undefined ? undefined : shardOf(values.shard),
  };
}

type TextOption = 'jobs' | 'grace' | 'root' | 'shard';
type Values = Partial<Record<TextOption, string>> & { readonly system?: boolean };

function parse(args: readonly string[]): { values: Values; positionals: string[] } {
  const text = { type: 'string' } as const;
  const options = { jobs: text, grace: text, root: text, shard: text, system: { type: 'boolean' } } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}; ${usage}`);
  }
}

function positive(values: Values, name: TextOption): number | undefined {
  const text = values[name];
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!(number > 0)) throw new Error(`--${name} takes a number above zero, not "${text}"`);
  return number;
}

function shardOf(text: string): Shard {
  const [, index, count] = /^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  if (!(shard.index >= 1 && shard.index <= shard.count))
    throw new Error(`--shard takes one of N, such as 1/3, not "${text}"`);
  return shard;
}
