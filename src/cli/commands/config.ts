// `stagedoor config | doctor`: the settings, with their sources, of a gateway that would start here now, and
// checks of the conditions for it, with advice.

import { ALL_SETTINGS } from '../../config/settings.ts';
import type { Config, ConfigRow } from '../../config.ts';
import type { CommandDefinition } from '../command.ts';
import type { Examination } from '../doctor/checks.ts';
import { wrapLines } from '../help.ts';
import { printResult, table } from '../output.ts';
import { readSettings, SETTING_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

export const config: CommandDefinition = {
  name: 'config',
  summary: 'Show the effective settings and where each comes from',
  options: { ...SETTING_OPTIONS, '--json': 'Print them as JSON' },
  examples: ['config', 'config --config gateway.yaml --json'],
  run: async (input, terminal) => {
    const settings = readSettings(input, terminal);
    printResult(input, terminal, typed(settings), () => table(terminal, COLUMNS, settings.rows));
    for (const warning of settings.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};

const COLUMNS = { SETTING: 'name', SOURCE: 'source', VALUE: 'value' } as const;

type TypedRow = Omit<ConfigRow, 'value'> & { readonly value: unknown };

/** The rows with values as numbers, booleans and lists; null for unset values. Units stay those of the settings. */
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
  // A sentence about the default is only for display.
  if (isDefault && setting.defaultText !== undefined) return setting.default;
  const read = setting.kind.read(value, '/');
  // Times are read as milliseconds, but written in seconds.
  if (typeof read === 'number') return Number(value);
  return typeof read === 'boolean' || Array.isArray(read) ? read : value;
}

/** No check changes anything. */
export const doctor: CommandDefinition = {
  name: 'doctor',
  summary:
    'Check Node, settings, database, ports, files, templates, proxies and the clock, with advice; exit code 1 when a check fails',
  options: { ...SETTING_OPTIONS, '--json': 'Print the checks as JSON' },
  examples: ['doctor', 'doctor --config gateway.yaml --json'],
  run: async (input, terminal) => {
    const { examine } = await import('../doctor/checks.ts');
    const checks = await terminal.busy('checking', () => examine(input, terminal));
    const hasFailed = checks.some(({ status }) => status === 'fail');
    printResult(input, terminal, { ok: !hasFailed, checks }, () =>
      checks.map((each) => lines(terminal, each)).join('\n'),
    );
    return hasFailed ? 1 : 0;
  },
};

/** Column in which texts begin. */
const TEXT_AT = 17;
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

function lines(terminal: Terminal, { check, status, text, advice }: Examination): string {
  const head = `${terminal.paint(COLOURS[status], status.padEnd(4))}  ${check.padEnd(9)}  `;
  const width = (terminal.columns ?? Number.POSITIVE_INFINITY) - TEXT_AT;
  const texts = [text, ...(advice === null ? [] : [advice])].flatMap((each) => wrapLines(each, width));
  return head + texts.join(`\n${' '.repeat(TEXT_AT)}`);
}
