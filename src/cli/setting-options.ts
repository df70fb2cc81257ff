// The options of settings, made from the table in config/settings.ts, and the Config made from their values.

import { type Config, loadConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { boolean, type Setting } from '../config/setting-types.ts';
import { ALL_SETTINGS } from '../config/settings.ts';
import type { CommandInput, OptionTable } from './command.ts';
import { UsageError } from './failures.ts';
import type { Terminal } from './terminal.ts';

/** The headings of help: each covers the settings of the table from the one with this flag on. */
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
};

function optionsOfSetting({
  flag,
  doc,
  kind,
  default: value,
  defaultText = kind.show(value),
}: Setting<unknown>): OptionTable {
  if (flag === undefined) return {};
  const group = groupOf(flag);
  const otherwise = defaultText === '' ? '' : `; default ${defaultText}`;
  const choices = kind.type.startsWith('one of') ? `; ${kind.type}` : '';
  const about = { description: doc.replace(/\.$/, '') + otherwise + choices, group };
  if (kind !== boolean) return { [`--${flag} <${kind.unit ?? 'value'}>`]: about };
  return { [`--${flag}`]: about, [`--no-${flag}`]: { description: `Turn ${flag} off`, group } };
}

function groupOf(flag: string): string {
  const flags = ALL_SETTINGS.map((row) => row.flag);
  const started = GROUPS.filter(([, firstFlag]) => flags.indexOf(firstFlag) <= flags.indexOf(flag));
  return (started.at(-1) ?? GROUPS[0])[0];
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
