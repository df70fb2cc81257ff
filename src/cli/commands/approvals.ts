// `stagedoor template tools | approve` and `stagedoor view tools | approve`: the tools of a template or of a view,
// and the approval of those of a pinned one.

import type { Command } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { indentedJson, printable, printResult, type TableColumns, table } from '../output.ts';
import { elementsOf, type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { ofTemplate } from '../remote/similar-names.ts';

interface Kind {
  readonly name: 'template' | 'view';
  readonly positional: string;
  readonly example: string;
  readonly path: string;
}

const TEMPLATE: Kind = {
  name: 'template',
  positional: '<template>',
  example: 'search',
  path: '/gateway/templates',
};

const VIEW: Kind = {
  name: 'view',
  positional: '<id>',
  example: 'support',
  path: '/gateway/views',
};

function toolsCommand(kind: Kind): Command {
  return {
    name: `${kind.name} tools`,
    positionals: `${kind.positional} [...tools]`,
    summary: `List the tools of a ${kind.name}, and whether their definitions are approved; with names, show the definitions`,
    options: CLIENT_OPTIONS,
    examples: [`${kind.name} tools ${kind.example}`, `${kind.name} tools ${kind.example} echo`],
    run: async (input, terminal) => {
      const id = input.positional(0);
      const names = new Set(input.positionals.slice(1));
      const gateway = await requireGateway(input, terminal);
      const answer = fields(await ofTemplate(gateway, id, () => gateway.request(pathOf(kind, id))));
      const all = objectsOf(answer.tools);
      if (names.size === 0)
        return printResult(input, terminal, answer, () =>
          all.length === 0 ? `the ${kind.name} ${id} has no tools` : table(terminal, COLUMNS, all),
        );
      const tools = all.filter(({ name }) => names.has(String(name)));
      const unknown = [...names].find((name) => tools.every((tool) => tool.name !== name));
      if (unknown !== undefined) throw new CommandFailure(`${id} has no tool named "${unknown}"`);
      return printResult(input, terminal, { ...answer, tools }, () => tools.map(definitionsOf).join('\n'));
    },
  };
}

const COLUMNS: TableColumns<Fields> = {
  TOOL: 'name',
  STATE: 'state',
  REASON: ({ reason }) => reason ?? '',
};

/** The state of a tool, its approved definition, and each that waits, with its digest. */
function definitionsOf({ name, state, reason, approved, waiting }: Fields): string {
  const lines = [`${name}: ${[state, reason].filter(Boolean).join(', ')}`];
  if (approved !== undefined) lines.push(`approved: ${indentedJson(approved)}`);
  for (const { digest, definition } of objectsOf(waiting))
    lines.push(`waits, digest ${digest}: ${indentedJson(definition)}`);
  return lines.map((line, at) => (at === 0 ? printable(line) : line)).join('\n');
}

function approveCommand(kind: Kind): Command {
  const { name, positional, example } = kind;
  return {
    name: `${name} approve`,
    positionals: `${positional} [...tools]`,
    summary: `Approve the definitions of tools of a pinned ${name} that wait, or of all; \`${name} tools ${positional} <tool>\` shows them`,
    options: {
      '--digest <sha256>...': 'Approve only the definition with this digest',
      ...CLIENT_OPTIONS,
    },
    examples: [`${name} approve ${example}`, `${name} approve ${example} echo`],
    run: async (input, terminal) => {
      const id = input.positional(0);
      const tools = input.positionals.slice(1);
      const digests = input.texts('digest');
      const body = { ...(tools.length > 0 && { tools }), ...(digests.length > 0 && { digests }) };
      const gateway = await requireGateway(input, terminal);
      const path = `${pathOf(kind, id)}/approve`;
      const answer = fields(
        await ofTemplate(gateway, id, () => gateway.request(path, { method: 'POST', body })),
      );
      const approved = elementsOf(answer.approved);
      return printResult(
        input,
        terminal,
        answer,
        approved.length === 0 ? 'no tool waited for approval' : `approved: ${approved.join(', ')}`,
      );
    },
  };
}

function pathOf({ path }: Kind, id: string): string {
  return `${path}/${encodeURIComponent(id)}/tools`;
}

export const templateTools = toolsCommand(TEMPLATE);
export const templateApprove = approveCommand(TEMPLATE);
export const viewTools = toolsCommand(VIEW);
export const viewApprove = approveCommand(VIEW);
