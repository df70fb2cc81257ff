// Checks whether a command gets a file or folder that would make its program an admin: the database, the key, the state or
// the configuration of the gateway. It reads the present file system; the caller decides what is refused. Source: ADR 51.

import { realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { InstanceDefinition } from '../domain/instance.ts';

/** A file or a folder that no command may get; it need not exist. */
export interface ProtectedPath {
  readonly path: string;
  /** Completes "is ..." and "is a folder that holds ...": `the database of this gateway`. */
  readonly what: string;
}

export type ExposedProgram = Pick<InstanceDefinition, 'command' | 'args' | 'workingDir' | 'env' | 'force'>;

/** Longest wait for the file system, in ms: a network folder may not answer. */
const LOOK_MS = 2_000;

export function protectedDatabase(file: string): ProtectedPath[] {
  const database = ['', '-wal', '-shm', '-journal'].map((ending) => `${file}${ending}`);
  return [
    ...database.map((path) => ({ path, what: 'the database of this gateway' })),
    { path: join(dirname(file), 'gateway.key'), what: 'the signing key of this gateway' },
  ];
}

/**
 * The reason why the command may not be registered or started, as one sentence; undefined when it may. Checks its working
 * folder, if any, its words, and the text after each `=` of a word, as paths that start in that folder (default `from`,
 * the gateway's folder). Links are followed; no path may be one of `paths` or a folder above one of them.
 */
export async function exposureOf(
  program: ExposedProgram,
  paths: readonly ProtectedPath[],
  from: string = process.cwd(),
): Promise<string | undefined> {
  const { command, args, workingDir, force } = program;
  if (command === undefined || force === true || paths.length === 0) return undefined;
  const folder = resolve(from, workingDir ?? '.');
  const written = [...new Set([command, ...args].flatMap(valuesOf))];
  const named: NamedPath[] = [
    ...(workingDir === undefined ? [] : [{ text: workingDir, path: folder }]),
    ...written.map((text) => ({
      text,
      path: pathOf(text, folder, program.env.HOME ?? homeFolder(process.env)),
    })),
  ];
  return Promise.race([firstExposure(named, paths), delay(LOOK_MS, UNANSWERED, { ref: false })]);
}

/** `HOME`, else the folder of the account; `/`, as in containers, for a user without an account. */
export function homeFolder(env: Readonly<Record<string, string | undefined>>): string {
  if (env.HOME) return env.HOME;
  try {
    return homedir();
  } catch {
    return '/'; // the system knows no such user
  }
}

interface NamedPath {
  readonly text: string;
  readonly path: string;
}

interface Holder {
  readonly protectedPath: ProtectedPath;
  readonly isItself: boolean;
}

async function firstExposure(
  named: readonly NamedPath[],
  paths: readonly ProtectedPath[],
): Promise<string | undefined> {
  // Nearly all folders are shared, and each is looked at once: a busy machine needs long for each answer.
  const resolved = await Promise.all(paths.map(({ path }) => resolvedPaths(path)));
  const byPath = new Map<string, Holder>();
  for (const [at, protectedPath] of paths.entries())
    for (const path of resolved[at] ?? [])
      for (const [index, above] of upwardsFrom(path).entries())
        if (!byPath.has(above)) byPath.set(above, { protectedPath, isItself: index === 0 });
  const keyed = await Promise.all(
    Array.from(byPath, async ([path, holder]) => (await keysOf(path)).map((key) => [key, holder] as const)),
  );
  const holders = new Map(keyed.flat().toReversed()); // of two with the same key the first counts
  for (const { text, path } of named) {
    const keys = await keysOf(path);
    const holder = keys.map((key) => holders.get(key)).find((found) => found !== undefined);
    if (holder !== undefined) return sentence(text, holder);
  }
  return undefined;
}

function sentence(text: string, { protectedPath: { path, what }, isItself }: Holder): string {
  const is = isItself ? what : `a folder that holds ${what} (${path})`;
  return (
    `"${text}" is ${is}: with it a program can make itself an admin; ` +
    'name another folder, such as ./shared, or allow it with "force": true (--force).'
  );
}

const UNANSWERED = `The paths of the command could not be checked within ${LOOK_MS / 1000} s; allow it with "force": true (--force).`;

/** The word, and the text after each `=` in it, if short enough for a path. */
function valuesOf(word: string): string[] {
  const values = word.length <= PATH_CHARACTERS ? [word] : [];
  const first = Math.max(0, word.length - PATH_CHARACTERS - 1);
  for (let at = word.indexOf('=', first); at !== -1; at = word.indexOf('=', at + 1))
    values.push(word.slice(at + 1));
  return values;
}

/** No system opens a longer path; it bounds the cost of one word of a command. */
const PATH_CHARACTERS = 4_096;

/** Not normalized: `link/..` is the folder above the link's target. Some programs expand `~` without a shell. */
function pathOf(text: string, folder: string, home: string): string {
  if (text === '~' || /^~[/\\]/.test(text)) return `${home}/${text.slice(1)}`;
  return resolve(text) === text || /^[/\\]/.test(text) ? text : `${folder}/${text}`;
}

/** The path as written, and with the links in its existing part followed. */
async function resolvedPaths(path: string): Promise<string[]> {
  for (const above of upwardsFrom(path)) {
    const real = await realpath(above).catch(() => undefined); // does not exist: the next one may
    if (real !== undefined) return [path, join(real, path.slice(above.length))];
  }
  return [path];
}

function upwardsFrom(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...upwardsFrom(above)];
}

/**
 * The path, for one that does not exist yet; and the identity of what this user sees there, because of links and of systems that
 * ignore letter case.
 */
async function keysOf(path: string): Promise<string[]> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined);
  return [resolve(path), ...(stats === undefined ? [] : [`${stats.dev}:${stats.ino}`])];
}
