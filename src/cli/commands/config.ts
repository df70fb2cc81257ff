// `stagedoor config | doctor`: the settings, with their sources, of a gateway that would start here now, and
// checks of the conditions for it, with advice.

import type { ConfigRow } from '../../config/config.ts';
import { fields } from '../answers.ts';
import type { Command } from '../command.ts';
import type { Examination } from '../doctor/checks.ts';
import { wrapLines } from '../help.ts';
import { type Columns, printResult, table } from '../output.ts';
import { readSettings, SETTING_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

export const config: Command = {
  name: 'config',
  summary: 'Show the effective settings and where each comes from',
  options: { ...SETTING_OPTIONS, '--json': 'Print them as JSON' },
  examples: ['config', 'config --config gateway.yaml --json'],
  run: async (input, terminal) => {
    const settings = readSettings(input, terminal);
    const record = settings.rows.map(({ name, typed: value, source }) => ({ name, value, source }));
    printResult(input, terminal, record, () => table(terminal, COLUMNS, settings.rows));
    for (const warning of settings.warnings) terminal.note(`warning: ${warning}`);
    return 0;
  },
};

const COLUMNS: Columns<ConfigRow> = {
  SETTING: 'name',
  SOURCE: 'source',
  VALUE: ({ value, setting, typed }) => (setting === undefined ? `${value} (${fields(typed).label})` : value),
};

/** No check changes anything. */
export const doctor: Command = {
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
