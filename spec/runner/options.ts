// Reads the command line of the spec runner. Own parser, 40 lines: the runner must not depend on the program it tests.

import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

/** What to run and how. */
export interface RunOptions {
  /** Folder that holds the spec files. Default: the `spec` folder of this repository. */
  readonly root: string;
  /** Only files whose path contains one of these. Empty = all. */
  readonly filters: readonly string[];
  /** How many files run at once. Default: one more than cores, because many of them wait most of the time. */
  readonly jobs: number;
  /** Longest one file may run, in ms. Default 120 000, below `system/` 300 000. Given = for every file. */
  readonly timeoutMs: number | undefined;
  /** Longest a file may stay alive after its last test, in ms. Default 3 000. */
  readonly graceMs: number;
}

const usage =
  'usage: npm run spec -- [part of a path ...] [--jobs N] [--timeout SECONDS] [--grace SECONDS] [--root FOLDER]';

/** Reads the arguments. Throws an Error with one line when they make no sense. */
export function readOptions(args: readonly string[]): RunOptions {
  const filters: string[] = [];
  const given = new Map<string, string>();
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (!word.startsWith('--')) {
      // Written as on the screen, also on Windows.
      filters.push(word.replaceAll('\\', '/'));
      continue;
    }
    const [name = '', inline] = word.split('=', 2);
    if (!['--jobs', '--timeout', '--grace', '--root'].includes(name))
      throw new Error(`unknown option ${word}; ${usage}`);
    if (inline === undefined) index += 1;
    given.set(name, inline ?? args[index] ?? '');
  }
  const timeoutSeconds = positive(given, '--timeout');
  return {
    root: given.get('--root') ?? fileURLToPath(new URL('..', import.meta.url)),
    filters,
    jobs: Math.ceil(positive(given, '--jobs') ?? availableParallelism() + 1),
    timeoutMs: timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000,
    graceMs: (positive(given, '--grace') ?? 3) * 1000,
  };
}

function positive(given: ReadonlyMap<string, string>, name: string): number | undefined {
  const text = given.get(name);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!(number > 0)) throw new Error(`${name} takes a number above zero, not "${text}"`);
  return number;
}
