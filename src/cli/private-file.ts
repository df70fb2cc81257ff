// Files with a user's secrets, such as tokens and exports: only their owner can read them, and they are replaced as a whole.

import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { makeFolders } from '../config/make-folders.ts';
import { codeOf } from '../domain/errors/errors.ts';
import { pauseSync } from '../domain/time/clock.ts';
import { CommandFailure, writeFailure } from './failures.ts';
import type { Terminal } from './terminal.ts';

const OWNER_ALONE = 0o600;

/**
 * Writes a file with mode 0600, in place of any file there; its folder is made with mode 0700 when there is none. Readers
 * see either the old or the new text. Throws CommandFailure when the file system refuses; then the old file is unchanged.
 */
export function writePrivateFile(path: string, text: string): void {
  try {
    makeFolders(dirname(path), 0o700);
    replaceFile(path, text, OWNER_ALONE, () => true);
  } catch (error) {
    throw writeFailure(path, error);
  }
}

/** The longest time for which one process has the lock of a file, in ms: one that still has it then was killed. */
const MAX_LOCKED_MS = 2_000;
const LOOK_MS = 5;

/**
 * Runs a function that reads a private file and writes it again, while no other process does so: of two changes at the same time
 * one would be lost. Throws CommandFailure when the file system refuses.
 */
export function changePrivateFile<T>(path: string, change: () => T): T {
  const lock = `${path}.lock`;
  let own: string | undefined;
  try {
    makeFolders(dirname(path), 0o700);
    own = takeLock(lock);
  } catch (error) {
    throw writeFailure(path, error);
  }
  try {
    return change();
  } finally {
    releaseLock(lock, own);
  }
}

/**
 * Makes the file of the lock, and gives its identity. The lock of a killed process is taken over by another lock, which belongs
 * to it: of several that wait only one removes the file, and never one that was made since.
 */
function takeLock(lock: string): string | undefined {
  let holder: string | undefined;
  for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
    try {
      writeFileSync(lock, '', { flag: 'wx', mode: OWNER_ALONE });
      return identityOf(lock);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    const present = identityOf(lock);
    if (present !== holder) [holder, waitedMs] = [present, 0];
    if (waitedMs >= MAX_LOCKED_MS && holder !== undefined) {
      const takeover = `${lock}.${holder}`;
      const own = takeLock(takeover);
      releaseLock(lock, holder);
      releaseLock(takeover, own);
    } else pauseSync(LOOK_MS);
  }
}

/** Removes the file of the lock, unless another process has taken it over. */
function releaseLock(lock: string, own: string | undefined): void {
  if (identityOf(lock) === own) rmSync(lock, { force: true });
}

/** Tells a file from an earlier one of the same name; undefined when there is none. */
function identityOf(path: string): string | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.ino}-${stats.mtimeNs}`;
}

/**
 * Replaces a file in an existing folder, with this mode. `mayReplace` is called right before the replacement; if it
 * returns false, nothing is replaced and the result is false. Throws the error of the file system.
 */
export function replaceFile(path: string, text: string, mode: number, mayReplace: () => boolean): boolean {
  const draft = `${path}.${process.pid}.tmp`;
  rmSync(draft, { force: true }); // left by a killed process with the same number
  try {
    // `wx` never writes through a link of another user.
    writeFileSync(draft, text, { flag: 'wx', mode: OWNER_ALONE, flush: true });
    chmodSync(draft, mode); // the umask may have removed even the owner's bits
    keepOwner(path, draft);
    if (!mayReplace()) {
      rmSync(draft);
      return false;
    }
    renameSync(draft, path);
    return true;
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Gives a copy that root made, never the target of a link, to the owner of the original, who has to be able to read it. */
export function keepOwner(original: string, copy: string): void {
  const owner = process.getuid?.() === 0 ? statSync(original, { throwIfNoEntry: false }) : undefined;
  if (owner !== undefined) lchownSync(copy, owner.uid, owner.gid);
}

/**
 * Writes a result to a new private file that the user has named, else to standard output. `about` follows the name of the file in
 * the report. Throws CommandFailure, before there is a result, when the file exists, or its folder does not.
 */
export function resultWriter(terminal: Terminal, file: string | undefined) {
  if (file === undefined) return terminal.print;
  const path = resolve(terminal.folder, file);
  if (!existsSync(dirname(path)))
    throw new CommandFailure(`${path} cannot be written: there is no folder ${dirname(path)}`);
  if (existsSync(path)) throw new CommandFailure(`${path} already exists`);
  return (text: string, about = ''): void => {
    writePrivateFile(path, `${text}\n`);
    terminal.note(`wrote ${path}${about}`);
  };
}
