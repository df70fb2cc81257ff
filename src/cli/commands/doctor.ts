// `stagedoor doctor`: checks the conditions for a gateway started here and now, and says how to fix problems.

import type { CommandDefinition } from '../command.ts';
import type { Examination } from '../doctor/checks.ts';
import { wrapLines } from '../help.ts';
import { printResult } from '../output.ts';
import { SETTING_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

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

/** Column at which texts begin. */
const TEXT_AT = 17;
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

function lines(terminal: Terminal, { check, status, text, advice }: Examination): string {
  const head = `${terminal.paint(COLOURS[status], status.padEnd(4))}  ${check.padEnd(9)}  `;
  const width = (terminal.columns ?? Number.POSITIVE_INFINITY) - TEXT_AT;
  const texts = [text, ...(advice === null ? [] : [advice])].flatMap((each) => wrapLines(each, width));
  return head + texts.join(`\n${' '.repeat(TEXT_AT)}`);
}
