// `stagedoor config`: the settings, with their sources, of a gateway that would start here now.

import type { ConfigRow } from '../../config/config.ts';
import { type Command, JSON_OPTION } from '../command.ts';
import { printResult, type TableColumns, table } from '../output.ts';
import { fields } from '../remote/answers.ts';
import { readSettings, SETTING_OPTIONS } from '../setting-options.ts';

export const config: Command = {
  name: 'config',
  summary: 'Show the effective settings and where each comes from',
  settingsOf: 'gateway start',
  options: { ...SETTING_OPTIONS, ...JSON_OPTION },
  examples: ['config', 'config --config gateway.yaml --json'],
  run: async (input, terminal) => {
    const settings = readSettings(input, terminal);
    const record = settings.rows.map(({ name, typed: value, source }) => ({ name, value, source }));
    printResult(input, terminal, record, () => table(terminal, COLUMNS, settings.rows));
    for (const warning of settings.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};

const COLUMNS: TableColumns<ConfigRow> = {
  SETTING: 'name',
  SOURCE: 'source',
  VALUE: ({ value, setting, typed }) => (setting === undefined ? `${value} (${fields(typed).label})` : value),
};
