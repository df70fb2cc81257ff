// The options of settings, made from the table in config/settings.ts, and the Config made from their values.

import { ConfigError } from '../config/config-error.ts';
import { boolean, type Setting, type SettingType } from '../config/setting-types.ts';
import { ALL_SETTINGS } from '../config/settings.ts';
import { type Config, loadConfig } from '../config.ts';
import type { CommandInput, OptionTable } from './command.ts';
import { UsageError } from './failures.ts';
import type { Terminal } from './terminal.ts';

/** Placeholders of values by the `type` of their setting; the first match counts. Default: the unit. */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/separated by commas$/, 'list'],
  [/^a port/, 'port'],
  [/^(a whole number|requests|entries)/, 'number'],
  [/ URL such as/, 'url'],
  [/^lists of words/, 'json'],
  [/^a name/, 'name'],
  [/^a file path/, 'file'],
  [/^a host name/, 'address'],
  [/^one of/, 'word'],
];

/** Descriptions of both forms of a switch, where the sentence about its setting explains only one. */
const SWITCHES: Readonly<Record<string, string>> = {
  '--sync': 'Register containers and pods that serve a template, and follow their changes',
  '--no-sync': 'Register them only on "gateway sync"; the default',
  '--auth': 'Require authentication; the default',
  '--no-auth': 'Turn authentication off: anyone who can reach the gateway is an admin; for local use only',
};

/** Headings of help: each covers the settings of the table from the one with this flag on. */
const GROUPS = [
  ['Service', 'host'],
  ['Balancing and sessions', 'strategy'],
  ['HTTP', 'cors-origins'],
  ['Accounts and limits', 'auth'],
  ['Storage and programs', 'database'],
] as const;

const CONFIG_DESCRIPTION = 'Configuration file; default gateway.yaml when it exists';

export const SETTING_OPTIONS: OptionTable = {
  '--config <file>': { description: CONFIG_DESCRIPTION, group: GROUPS[0][0] },
  ...Object.assign({}, ...ALL_SETTINGS.map(optionsOfSetting)),
  '--registry <file>': { description: 'Short for --registry-file', group: groupOf('registry-file') },
};

function optionsOfSetting({ flag, ...row }: Setting<unknown>): OptionTable {
  if (flag === undefined) return {};
  const group = groupOf(flag);
  const description = descriptionOf(row);
  if (row.kind !== boolean)
    return { [`--${flag} <${placeholderOf(flag, row.kind)}>`]: { description, group } };
  return {
    [`--${flag}`]: { description: SWITCHES[`--${flag}`] ?? description, group },
    [`--no-${flag}`]: { description: SWITCHES[`--no-${flag}`] ?? `Turn ${flag} off`, group },
  };
}

function groupOf(flag: string): string {
  const flags = ALL_SETTINGS.map((row) => row.flag);
  const started = GROUPS.filter(([, firstFlag]) => flags.indexOf(firstFlag) <= flags.indexOf(flag));
  return (started.at(-1) ?? GROUPS[0])[0];
}

function descriptionOf({
  doc,
  kind,
  default: value,
  defaultText = kind.show(value),
}: Omit<Setting<unknown>, 'flag'>) {
  const otherwise = defaultText === '' ? '' : `; default ${defaultText}`;
  const choices = kind.type.startsWith('one of') ? `; ${kind.type}` : '';
  return doc.replace(/\.$/, '') + otherwise + choices;
}

function placeholderOf(flag: string, { type, unit = 'value' }: SettingType<unknown>): string {
  if (flag.endsWith('-dir')) return 'folder';
  return PLACEHOLDERS.find(([pattern]) => pattern.test(type))?.[1] ?? unit;
}

/** The settings from options, environment and configuration file. `forced`: flags that options replace. */
export function readSettings(
  input: CommandInput,
  terminal: Terminal,
  forced: Readonly<Record<string, string>> = {},
): Config {
  const flags: Record<string, string | boolean | undefined> = { config: input.text('config') };
  for (const { flag, kind } of ALL_SETTINGS) {
    if (flag !== undefined)
      flags[flag] = (kind === boolean ? input.switch(flag) : input.text(flag)) ?? forced[flag];
  }
  const registry = input.text('registry');
  if (registry !== undefined && flags['registry-file'] !== undefined) {
    throw new UsageError('--registry cannot be combined with --registry-file: both name the same setting');
  }
  flags['registry-file'] ??= registry;
  try {
    return loadConfig({ flags, env: terminal.env, cwd: terminal.folder });
  } catch (error) {
    if (error instanceof ConfigError)
      throw new UsageError([error.message, ...error.others].join('\n'), { cause: error });
    throw error;
  }
}

/**
 * The options that choose the database of a command; all else comes from the environment and gateway.yaml, as
 * for `gateway start`. `--database` is a setting, so a URL with a password is refused.
 */
export const DATABASE_OPTIONS: OptionTable = {
  '--database <url>':
    'Database to use; default the one of a gateway started here. GATEWAY_DATABASE_URL may hold a password',
  '--config <file>': CONFIG_DESCRIPTION,
};
