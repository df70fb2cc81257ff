// A registry file that is being written. An editor or a copy that writes in place leaves the first part of it for a
// moment, and in YAML that part may be a whole document, without the instances of the rest. Source: ADR 65.

import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type Clock, sleep } from '../../domain/time/clock.ts';
import { RegistryFileError } from './registry-file.ts';

/** A file is at rest when nothing has written to it for this time, in ms. */
const REST_MS = 1_000;
/** Looks at a file that is written to again and again. */
const MAX_LOOKS = 10;

/**
 * Resolves with the result of `read` for a file to which nothing was written for a second; for a path that is not a file, at
 * once. Throws as `read`, the reason of the signal, and RegistryFileError when the file is still being written after 10 s.
 */
export async function readAtRest<T>(
  path: string,
  read: () => Promise<T>,
  clock: Clock,
  signal: AbortSignal,
): Promise<T> {
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const before = await look(path);
    if (before === undefined) return read();
    if (clock.wall() - before.mtimeMs < REST_MS) {
      await sleep(clock.background, REST_MS, signal);
      // The time alone is not compared: the clock of a file server may be another one.
      if (!isSame(before, await look(path))) continue;
    }
    const contents = await read();
    if (isSame(before, await look(path))) return contents;
  }
  throw new RegistryFileError(`registry file ${path}: it is being written`);
}

/** The state of a file; undefined for a path that is not a file, or cannot be examined: the error comes from reading it. */
async function look(path: string): Promise<Stats | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() === true ? found : undefined;
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return one.ino === other?.ino && one.size === other.size && one.mtimeMs === other.mtimeMs;
}
