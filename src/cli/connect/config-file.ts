// A client's own configuration file: where it is, what it would be with an entry more or less, and writing it. It is replaced
// as a whole or not at all, after a copy of it was kept.

import { chownSync, copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { CommandFailure } from '../failures.ts';
import { replaceFile } from '../private-file.ts';
import type { Terminal } from '../terminal.ts';
import { type ConfigEdit, editedConfig } from './edit-config.ts';
import type { FileLocations } from './kind.ts';

/** Largest file that is edited. Over it, it is not the file of a client. */
const LARGEST_BYTES = 5 * 1024 * 1024;

/** A file as it was read. */
export interface ConfigText {
  /** Where it is, links followed. */
  readonly path: string;
  /** Undefined when there is none. */
  readonly text: string | undefined;
  readonly mode: number;
}

/** Where the file is on this system. */
export function locate(
  { macos, windows, linux }: FileLocations,
  { env, folder }: Pick<Terminal, 'env' | 'folder'>,
  platform: NodeJS.Platform = process.platform,
): string {
  const place = platform === 'win32' ? windows : platform === 'darwin' ? macos : linux;
  const home = env.HOME || homedir();
  const known: Readonly<Record<string, string | undefined>> = {
    USERPROFILE: env.USERPROFILE || home,
    APPDATA: env.APPDATA || join(home, 'AppData', 'Roaming'),
  };
  const filled = place.replace(/^~(?=\/)/, home).replace(/%(\w+)%/g, (text, name) => known[name] ?? text);
  return resolve(folder, filled);
}

/** Reads it. Throws CommandFailure for everything that is no file to be edited. */
export function readConfig(written: string): ConfigText {
  try {
    const path = realpathSync(written);
    const found = statSync(path);
    if (!found.isFile()) throw new CommandFailure(`${path} is not a file`);
    if ((found.mode & 0o222) === 0) throw new CommandFailure(`${path} is read-only; nothing was changed`);
    if (found.size > LARGEST_BYTES) throw new CommandFailure(`${path} has ${found.size} bytes: not edited`);
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
    return { path, text, mode: found.mode & 0o777 };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    if (error instanceof TypeError && !('errno' in error)) {
      throw new CommandFailure(`${written} is not UTF-8: not edited`, { cause: error });
    }
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown reason';
    if (code === 'ENOENT') return { path: written, text: undefined, mode: 0o600 };
    throw new CommandFailure(`${written} cannot be read (${code}); nothing was changed`, { cause: error });
  }
}

/** What the file would be. Throws CommandFailure with its name. */
export function plannedText({ path, text = '' }: ConfigText, edit: ConfigEdit): string {
  const [, mark = '', rest = ''] = /^(\ufeff?)(.*)$/s.exec(text) ?? [];
  try {
    return mark + editedConfig(rest, edit);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    throw new CommandFailure(`${path} ${error.message}; nothing was changed`, { cause: error });
  }
}

/** Replaces the file. The answer is where the copy of the old one is; undefined when there was none. */
export function writeConfig(
  { path, text: before, mode }: ConfigText,
  after: string,
  now = new Date(),
): string | undefined {
  const backup = `${path}.${now.toISOString().replace(/[-:]|\.\d+Z$/g, '')}.bak`;
  try {
    if (before === undefined) mkdirSync(dirname(path), { recursive: true });
    else copyFileSync(path, backup);
    const owner = before === undefined ? undefined : statSync(path);
    const isStillSame = () => readConfig(path).text === before;
    if (!replaceFile(path, after, mode, isStillSame)) {
      throw new CommandFailure(`${path} was changed by another program meanwhile; run it again`);
    }
    // Run as root, for the file of another user.
    if (owner !== undefined && owner.uid !== process.getuid?.()) chownSync(path, owner.uid, owner.gid);
  } catch (error) {
    rmSync(backup, { force: true });
    if (error instanceof CommandFailure) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown reason';
    throw new CommandFailure(`${path} cannot be written (${code}); nothing was changed`, { cause: error });
  }
  return before === undefined ? undefined : backup;
}

/** The lines that differ, with three around them: an edit is in one place. Empty when nothing differs. */
export function differenceOf(before: string, after: string): string {
  if (before === after) return '';
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (
    end < Math.min(old.length, fresh.length) - start &&
    old[old.length - 1 - end] === fresh[fresh.length - 1 - end]
  ) {
    end += 1;
  }
  const around = (lines: readonly string[]) => lines.map((line) => `  ${line}`);
  return [
    ...around(old.slice(Math.max(0, start - AROUND), start)),
    ...old.slice(start, old.length - end).map((line) => `- ${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+ ${line}`),
    ...around(old.slice(old.length - end, old.length - end + AROUND)),
  ].join('\n');
}

const AROUND = 3;

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
