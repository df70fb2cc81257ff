// `stagedoor config`: the settings a gateway started here and now would have, and where each comes from.

import { ALL_SETTINGS } from '../../config/settings.ts';
import type { Config, ConfigRow } from '../../config.ts';
import type { CommandDefinition } from '../command.ts';
import { printResult, table } from '../output.ts';
import { readSettings, SETTING_OPTIONS } from '../setting-options.ts';

export const config: CommandDefinition = {
  name: 'config',
  summary: 'Show the effective settings and where each comes from',
  options: { ...SETTING_OPTIONS, '--json': 'Print them as JSON' },
  examples: ['config', 'config --config gateway.yaml --json'],
  run: async (input, terminal) => {
    const settings = readSettings(input, terminal);
    printResult(input, terminal, typed(settings), () =>
      [table(terminal, COLUMNS, settings.rows), explanation(settings)].join('\n\n'),
    );
    for (const warning of settings.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};

const COLUMNS = { SETTING: 'name', SOURCE: 'source', VALUE: 'value' } as const;

function explanation({ listeners, portsDefaulted }: Config): string {
  if (portsDefaulted) {
    return 'It listens on two ports because no port is set: each serves everything; --port leaves one.';
  }
  return listeners.length > 1
    ? 'It listens on one port per PORT variable: each serves everything; --port leaves one.'
    : 'The port it listens on serves everything.';
}

type TypedRow = Omit<ConfigRow, 'value'> & { readonly value: unknown };

/** The rows with numbers, booleans and lists as such; null for what is not set. Units stay those of the settings. */
function typed({ rows, listeners }: Config): readonly TypedRow[] {
  // The rows of listeners are the first ones, in the same order.
  return rows.map((row, index) => ({
    ...row,
    value: row.name === 'listen' ? listeners[index] : typedValue(row),
  }));
}

function typedValue({ name, value, source }: ConfigRow): unknown {
  const setting = ALL_SETTINGS.find(({ key }) => key === name);
  if (setting === undefined) return value;
  const isDefault = source === 'default';
  if (isDefault && setting.default === undefined) return null;
  // A sentence about the default is for people.
  if (isDefault && setting.defaultText !== undefined) return setting.default;
  const read = setting.kind.read(value, '/');
  // Times are read as milliseconds, but written in seconds.
  if (typeof read === 'number') return Number(value);
  return typeof read === 'boolean' || Array.isArray(read) ? read : value;
}
