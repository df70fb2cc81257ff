// `connect --write` and `--remove`: shows the change of a client's configuration file, asks for confirmation and writes it.

import { constants, copyFileSync, lstatSync, realpathSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolders } from '../../config/make-folders.ts';
import { readRegularFile } from '../../config/read-file.ts';
import type { ConnectKind, FileLocations } from '../../connect/connect-kind.ts';
import { type ConnectTarget, KEY_PLACEHOLDER } from '../../connect/connect-target.ts';
import { configText } from '../../connect/file-clients.ts';
import { codeOf, fileFault } from '../../domain/errors/errors.ts';
import { homeFolder } from '../../templates/command-exposure.ts';
import type { CommandInput } from '../command.ts';
import { CommandFailure, UsageError, writeFailure } from '../failures.ts';
import { keepOwner, replaceFile } from '../private-file.ts';
import { isAgreed, type Terminal } from '../terminal.ts';
import { type ConfigEdit, editedConfig } from './edit-config.ts';

const MAX_FILE_BYTES = 5 * 1024 * 1024;
/** The most copies of a file from one millisecond. */
const MAX_COPIES = 100;

interface ConfigText {
  readonly path: string;
  /** The present text; undefined when there is no file. */
  readonly text: string | undefined;
  readonly mode: number;
}

/** The absolute path on this system, with `~` and `%NAME%` filled in. Whether it exists is not checked. */
export function locate(
  { macos, windows, linux }: FileLocations,
  { env, folder }: Pick<Terminal, 'env' | 'folder'>,
  platform: NodeJS.Platform = process.platform,
): string {
  const path = platform === 'win32' ? windows : platform === 'darwin' ? macos : linux;
  const home = homeFolder(env);
  const known: Readonly<Record<string, string | undefined>> = {
    USERPROFILE: env.USERPROFILE || home,
    APPDATA: env.APPDATA || join(home, 'AppData', 'Roaming'),
  };
  const filled = path.replace(/^~(?=\/)/, home).replace(/%(\w+)%/g, (text, name) => known[name] ?? text);
  return resolve(folder, filled);
}

/** Reads a file that can be edited. Throws CommandFailure for any other. */
function readConfig(written: string): ConfigText {
  try {
    const path = realpathSync(written);
    const found = statSync(path);
    if (!found.isFile()) throw new CommandFailure(`${path} is not a file`);
    if ((found.mode & 0o222) === 0) throw new CommandFailure(`${path} is read-only; nothing was changed`);
    if (found.size > MAX_FILE_BYTES) throw new CommandFailure(`${path} has ${found.size} bytes: not edited`);
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readRegularFile(path));
    return { path, text, mode: found.mode & 0o777 };
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    if (error instanceof TypeError && !('errno' in error)) {
      throw new CommandFailure(`${written} is not UTF-8: not edited`, { cause: error });
    }
    // A new file would replace a link that has no target.
    if (codeOf(error) === 'ENOENT' && !lstatSync(written, { throwIfNoEntry: false }))
      return { path: written, text: undefined, mode: 0o600 };
    throw new CommandFailure(`${written} cannot be read (${fileFault(error)}); nothing was changed`, {
      cause: error,
    });
  }
}

/** The text after the edit. Throws CommandFailure with the name of the file. */
function plannedText({ path, text = '' }: ConfigText, edit: ConfigEdit): string {
  const [, mark = '', rest = ''] = /^(\ufeff?)(.*)$/s.exec(text) ?? [];
  try {
    return mark + editedConfig(rest, edit);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    throw new CommandFailure(`${path} ${error.message}; nothing was changed`, { cause: error });
  }
}

/** Replaces the file. Returns the path of the copy of the old file; undefined when there was none. */
function writeConfig({ path, text: before, mode }: ConfigText, after: string): string | undefined {
  let backup: string | undefined;
  try {
    if (before === undefined) makeFolders(dirname(path));
    else {
      backup = copyBeside(path);
      keepOwner(path, backup);
    }
    const isStillSame = () => readConfig(path).text === before;
    if (!replaceFile(path, after, mode, isStillSame)) {
      throw new CommandFailure(`${path} was changed by another program meanwhile; run the command again`);
    }
  } catch (error) {
    if (backup !== undefined) rmSync(backup, { force: true });
    if (error instanceof CommandFailure) throw error;
    throw writeFailure(path, error, '; nothing was changed');
  }
  return backup;
}

/** Copies the file under the first free name of this moment. Returns the path of the copy. */
function copyBeside(path: string): string {
  const time = new Date().toISOString().replace(/[-:.Z]/g, '');
  for (let number = 1; ; number += 1) {
    const copy = `${path}.${time}${number === 1 ? '' : `-${number}`}.bak`;
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL); // not through a link of another user
      return copy;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST' || number === MAX_COPIES) throw error;
    }
  }
}

/** The lines that differ, with three lines of context: an edit is in one place. */
function differenceOf(before: string, after: string): string {
  const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, fresh.length) - start;
  while (end < most && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  const around = (lines: readonly string[]) => lines.map((line) => `  ${line}`);
  return [
    ...around(old.slice(Math.max(0, start - AROUND), start)),
    ...old.slice(start, old.length - end).map((line) => `- ${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+ ${line}`),
    ...around(old.slice(old.length - end, old.length - end + AROUND)),
  ].join('\n');
}

const AROUND = 3;

interface EntryChange {
  readonly kind: ConnectKind;
  readonly template: string;
  /** The new entry; undefined to remove it. */
  readonly target: ConnectTarget | undefined;
}

/** Shows the change of the file of a client, and makes it once the user agrees. */
export async function changeEntry(
  { kind: { file, title }, template, target }: EntryChange,
  input: CommandInput,
  terminal: Terminal,
): Promise<void> {
  if (file === undefined)
    throw new UsageError(`${title} has no configuration file: --write and --remove are not possible`);
  if (target !== undefined && configText(file, target).includes(KEY_PLACEHOLDER)) {
    throw new UsageError(
      `${title} reads no variables in its file: give the key with --key, or a gateway with --env`,
    );
  }
  const written = input.text('file');
  const locations =
    written === undefined ? file.locations : { macos: written, windows: written, linux: written };
  const before = readConfig(locate(locations, terminal));
  const after = plannedText(before, { file, template, target });
  const { path, text = '' } = before;
  if (after === text) {
    terminal.print(`${path} needs no change for ${template}`);
    return;
  }
  terminal.print(`${path}${before.text === undefined ? ' (new)' : ''}\n\n${differenceOf(text, after)}\n`);
  if (!input.has('yes') && !terminal.canAsk)
    throw new CommandFailure('nothing was written, since there is no terminal to ask at; --yes writes it');
  if (!input.has('yes') && !(await isAgreed(terminal, 'Write it?'))) {
    terminal.print('nothing was written; --yes writes it');
    return;
  }
  const backup = writeConfig(before, after);
  terminal.print(`wrote ${path}${backup === undefined ? '' : `; the old file is kept as ${backup}`}`);
  warnOfReaders(before, after, target?.key?.value, terminal);
  terminal.print(`Restart ${title}, or let it read its servers again.`);
}

/**
 * Warns when other users can read the file. It keeps its mode, which its user chose before there was a key in it. On
 * Windows other users cannot read the user's folder.
 */
function warnOfReaders(
  { path, mode }: Pick<ConfigText, 'path' | 'mode'>,
  text: string,
  key: string | undefined,
  { note }: Pick<Terminal, 'note'>,
): void {
  if (key === undefined || !text.includes(key) || (mode & 0o077) === 0 || process.platform === 'win32')
    return;
  note(`warning: other users can read the key in ${path}: run "chmod 600 ${path}"`);
}
