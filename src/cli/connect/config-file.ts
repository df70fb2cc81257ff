// `connect --write` and `--remove`: a client's own configuration file. The change is shown, confirmed and written. The file is
// replaced as a whole or not at all, and a copy of the old one is kept.

import { chownSync, copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { ConfigFile, Connection, ConnectKind, FileLocations } from '../../connect/kind.ts';
import type { CommandInput } from '../command.ts';
import { CommandFailure, errorCode, UsageError, writeFailure } from '../failures.ts';
import { replaceFile } from '../private-file.ts';
import type { Terminal } from '../terminal.ts';
import { type ConfigEdit, editedConfig } from './edit-config.ts';

/** Largest file that is edited. Over it, it is not the file of a client. */
const LARGEST_BYTES = 5 * 1024 * 1024;

/** A file as it was read. */
interface ConfigText {
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
function readConfig(written: string): ConfigText {
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
    const code = errorCode(error) ?? 'unknown reason';
    if (code === 'ENOENT') return { path: written, text: undefined, mode: 0o600 };
    throw new CommandFailure(`${written} cannot be read (${code}); nothing was changed`, { cause: error });
  }
}

/** What the file would be. Throws CommandFailure with its name. */
function plannedText({ path, text = '' }: ConfigText, edit: ConfigEdit): string {
  const [, mark = '', rest = ''] = /^(\ufeff?)(.*)$/s.exec(text) ?? [];
  try {
    return mark + editedConfig(rest, edit);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    throw new CommandFailure(`${path} ${error.message}; nothing was changed`, { cause: error });
  }
}

/** Replaces the file. The answer is where the copy of the old one is; undefined when there was none. */
function writeConfig(
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
      throw new CommandFailure(`${path} was changed by another program meanwhile; run the command again`);
    }
    // Run as root, for the file of another user.
    if (owner !== undefined && owner.uid !== process.getuid?.()) chownSync(path, owner.uid, owner.gid);
  } catch (error) {
    rmSync(backup, { force: true });
    if (error instanceof CommandFailure) throw error;
    throw writeFailure(path, error, '; nothing was changed');
  }
  return before === undefined ? undefined : backup;
}

/** The lines that differ, with three around them: an edit is in one place. Empty when nothing differs. */
function differenceOf(before: string, after: string): string {
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

/** Puts the entry into the file. Resolves with the exit code. */
export async function writeEntry(
  kind: ConnectKind,
  connection: Connection,
  input: CommandInput,
  terminal: Terminal,
): Promise<number> {
  const file = fileOf(kind);
  const { key } = connection;
  if (kind.needsKeyInFile && key !== undefined && key.value === undefined) {
    throw new UsageError(
      `${kind.title} reads no variables in its file: give the key with --key, or a gateway with --env`,
    );
  }
  const { template } = connection;
  const edit = { file, template, connection, own: OWN };
  const before = readConfig(pathOf(file, input, terminal));
  return settle(before, plannedText(before, edit), { input, terminal, template, kind });
}

/** Takes the entry out of the file. */
export async function removeEntry(
  kind: ConnectKind,
  template: string,
  input: CommandInput,
  terminal: Terminal,
): Promise<number> {
  const file = fileOf(kind);
  const before = readConfig(pathOf(file, input, terminal));
  const after = plannedText(before, { file, template, own: OWN });
  return settle(before, after, { input, terminal, template, kind });
}

/** Members that entries of any kind have: an update removes those that an entry no longer needs. */
const OWN: readonly string[] = [
  ...['type', 'command', 'args', 'env', 'url', 'headers', 'serverUrl', 'httpUrl'],
  ...['requestOptions', 'cmd', 'uri'],
];

function fileOf({ title, file }: ConnectKind): ConfigFile {
  if (file === undefined)
    throw new UsageError(`${title} has no configuration file: --write and --remove are not possible`);
  return file;
}

function pathOf(file: ConfigFile, input: CommandInput, terminal: Terminal): string {
  const place = input.text('file');
  return locate(
    place === undefined ? file.locations : { macos: place, windows: place, linux: place },
    terminal,
  );
}

interface Context {
  readonly input: CommandInput;
  readonly terminal: Terminal;
  readonly template: string;
  readonly kind: ConnectKind;
}

async function settle(
  before: ConfigText,
  after: string,
  { input, terminal, template, kind }: Context,
): Promise<number> {
  const { path, text = '' } = before;
  if (after === text) {
    terminal.print(`${path} needs no change for ${template}`);
    return 0;
  }
  terminal.print(`${path}${before.text === undefined ? ' (new)' : ''}\n\n${differenceOf(text, after)}\n`);
  if (!(await isWanted(input, terminal))) {
    terminal.print('nothing was written; --yes writes it');
    return 0;
  }
  const backup = writeConfig(before, after);
  terminal.print(`wrote ${path}${backup === undefined ? '' : `; the old file is kept as ${backup}`}`);
  terminal.print(`Restart ${kind.title}, or let it read its servers again.`);
  return 0;
}

async function isWanted(input: CommandInput, terminal: Terminal): Promise<boolean> {
  if (input.has('yes')) return true;
  if (!terminal.canAsk) return false;
  terminal.complain('Write it? [y/N]');
  return /^\s*y(es)?\s*$/i.test((await terminal.readLine()) ?? '');
}
