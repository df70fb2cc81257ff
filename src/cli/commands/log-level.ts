// `stagedoor gateway log-level`: shows or changes the level of the log of a running gateway.

import { fields } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { printResult } from '../output.ts';

export const logLevel: CommandDefinition = {
  name: 'gateway log-level',
  positionals: '[level]',
  summary: 'Show the level of the log, or change it until the next start',
  options: CLIENT_OPTIONS,
  examples: ['gateway log-level', 'gateway log-level debug'],
  run: async (input, terminal) => {
    const gateway = await gatewayOf(input, terminal);
    const [level] = input.positionals;
    const change = level === undefined ? {} : ({ method: 'PATCH', body: { level } } as const);
    const answer = await gateway.request('/gateway/log-level', change);
    return printResult(input, terminal, answer, String(fields(answer).level));
  },
};
