// Walks a path as the kernel does: part by part, and each link is followed before the next part, so that `link/..` is the folder
// above the target of the link. It reads the file system and decides nothing.

import { lstat, readlink } from 'node:fs/promises';
import { dirname, isAbsolute, join, parse, sep } from 'node:path';

export interface Location {
  /** The path, absolute, and without links as far as it exists. */
  readonly path: string;
  /**
   * The device and the inode: the same for a hard link, a bind mount or another case of letters. undefined: it does
   * not exist.
   */
  readonly identity: string | undefined;
}

/**
 * Walks `path` from the folder `start`. A part that does not exist counts as an empty folder: it may be created later.
 * `passed`: the locations on the way, in order; of a relative path those after the start.
 */
export type Walk = (
  path: string,
  start?: string,
) => Promise<{ readonly end: Location; readonly passed: readonly Location[] }>;

interface Entry extends Location {
  /** The target of a symbolic link. */
  readonly target?: string;
}

/** The most links in a path: Linux refuses a path with more. */
const MAX_LINKS = 40;

/** The entry at an absolute path. */
export type Look = (path: string) => Promise<Entry>;

/** A walk that looks at each location once, and at none below one that does not exist. */
export function createWalk(look: Look): Walk {
  const entries = new Map<string, Promise<Entry>>();
  const entryAt = (path: string): Promise<Entry> => {
    const known = entries.get(path) ?? look(path);
    entries.set(path, known);
    return known;
  };
  return async (path, start = '') => {
    let here = await entryAt(isAbsolute(path) ? parse(path).root : start);
    const passed: Location[] = isAbsolute(path) ? [here] : [];
    const below: string[] = []; // parts under a location that does not exist
    const left = partsOf(path);
    for (let links = 0, part = left.pop(); part !== undefined; part = left.pop()) {
      if (part === '' || part === '.') continue;
      if (below.length > 0 && part === '..') {
        below.pop();
        continue;
      }
      if (here.identity === undefined && part !== '..') {
        below.push(part);
        continue;
      }
      const next = await entryAt(part === '..' ? dirname(here.path) : join(here.path, part));
      if (next.target === undefined || links === MAX_LINKS) here = next;
      else {
        links += 1;
        left.push(...partsOf(next.target));
        if (!isAbsolute(next.target)) continue;
        here = await entryAt(parse(next.target).root);
      }
      passed.push(here);
    }
    const end = below.length === 0 ? here : { path: join(here.path, ...below), identity: undefined };
    return { end, passed };
  };
}

/** The parts of a path, the last one first. */
function partsOf(path: string): string[] {
  return path
    .slice(parse(path).root.length)
    .split(sep === '/' ? '/' : /[/\\]/)
    .reverse();
}

/** The entry in the file system. */
export async function lookAt(path: string): Promise<Entry> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined); // it does not exist, or this user may not see it
  if (stats === undefined) return { path, identity: undefined };
  const identity = `${stats.dev}:${stats.ino}`;
  const target = stats.isSymbolicLink() ? await readlink(path).catch(() => undefined) : undefined; // removed since
  return target === undefined ? { path, identity } : { path, identity, target };
}
