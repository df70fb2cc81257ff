// `connect --write` and `--remove`: shows what changes in the client's file, asks, and does it.

import type { CommandInput } from '../command.ts';
import { UsageError } from '../failures.ts';
import type { Terminal } from '../terminal.ts';
import {
  type ConfigText,
  differenceOf,
  locate,
  plannedText,
  readConfig,
  writeConfig,
} from './config-file.ts';
import type { ConfigFile, Connection, ConnectKind } from './kind.ts';

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

/** Members that entries of some kind have: those that an entry does not need any more go. */
const OWN: readonly string[] = [
  ...['type', 'command', 'args', 'env', 'url', 'headers', 'serverUrl', 'httpUrl'],
  ...['requestOptions', 'cmd', 'uri'],
];

function fileOf({ title, file }: ConnectKind): ConfigFile {
  if (file === undefined)
    throw new UsageError(`${title} has no file of servers: --write does not go with it`);
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
  terminal.print(`wrote ${path}${backup === undefined ? '' : `; what it was is in ${backup}`}`);
  terminal.print(`Restart ${kind.title}, or let it read its servers again.`);
  return 0;
}

async function isWanted(input: CommandInput, terminal: Terminal): Promise<boolean> {
  if (input.switch('yes') === true) return true;
  if (!terminal.canAsk) return false;
  terminal.complain('Write it? [y/N]');
  return /^\s*y(es)?\s*$/i.test((await terminal.readLine()) ?? '');
}
