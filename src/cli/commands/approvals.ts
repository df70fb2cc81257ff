// `stagedoor template tools | approve`: the tools of a template, and the approval of those of a pinned one.

import { type Fields, fields, itemsOf, listOf } from '../answers.ts';
import type { Command } from '../command.ts';
import { type Columns, printResult, table } from '../output.ts';
import { CLIENT_OPTIONS, gatewayOf, ofTemplate } from '../remote.ts';

export const templateTools: Command = {
  name: 'template tools',
  positionals: '<template>',
  summary: 'List the tools of a template, and whether their definitions are approved',
  options: CLIENT_OPTIONS,
  examples: ['template tools search'],
  run: async (input, terminal) => {
    const template = input.positional(0);
    const gateway = await gatewayOf(input, terminal);
    const answer = fields(await ofTemplate(gateway, template, () => gateway.request(pathOf(template))));
    const tools = listOf(answer.tools);
    return printResult(input, terminal, answer, () =>
      tools.length === 0 ? `The template ${template} has no tools.` : table(terminal, COLUMNS, tools),
    );
  },
};

const COLUMNS: Columns<Fields> = {
  TOOL: 'name',
  STATE: 'state',
  REASON: ({ reason }) => reason ?? '',
};

export const templateApprove: Command = {
  name: 'template approve',
  positionals: '<template> [...tools]',
  summary: 'Approve tools of a pinned template as they are listed now, or all; `template tools` shows them',
  options: CLIENT_OPTIONS,
  examples: ['template approve search', 'template approve search echo'],
  run: async (input, terminal) => {
    const template = input.positional(0);
    const tools = input.positionals.slice(1);
    const body = tools.length === 0 ? {} : { tools };
    const gateway = await gatewayOf(input, terminal);
    const path = `${pathOf(template)}/approve`;
    const answer = fields(
      await ofTemplate(gateway, template, () => gateway.request(path, { method: 'POST', body })),
    );
    const approved = itemsOf(answer.approved);
    return printResult(
      input,
      terminal,
      answer,
      approved.length === 0 ? 'no tool waited for approval' : `approved: ${approved.join(', ')}`,
    );
  },
};

function pathOf(template: string): string {
  return `/gateway/templates/${encodeURIComponent(template)}/tools`;
}
