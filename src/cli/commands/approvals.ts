// `stagedoor template tools | approve` and `stagedoor view tools | approve`: the tools of a template or of a view,
// and the approval of those of a pinned one.

import type { Command } from '../command.ts';
import { printResult, type TableColumns, table } from '../output.ts';
import { elementsOf, type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS, ofTemplate, type Remote, requireGateway } from '../remote/remote.ts';

interface Kind {
  readonly name: 'template' | 'view';
  readonly positional: string;
  readonly example: string;
  readonly path: string;
  /** Runs the request; its failure for an unknown name suggests a similar one. */
  explained<T>(gateway: Remote, id: string, request: () => Promise<T>): Promise<T>;
}

const TEMPLATE: Kind = {
  name: 'template',
  positional: '<template>',
  example: 'search',
  path: '/gateway/templates',
  explained: ofTemplate,
};

const VIEW: Kind = {
  name: 'view',
  positional: '<id>',
  example: 'support',
  path: '/gateway/views',
  explained: (_gateway, _id, request) => request(),
};

function toolsCommand(kind: Kind): Command {
  return {
    name: `${kind.name} tools`,
    positionals: kind.positional,
    summary: `List the tools of a ${kind.name}, and whether their definitions are approved`,
    options: CLIENT_OPTIONS,
    examples: [`${kind.name} tools ${kind.example}`],
    run: async (input, terminal) => {
      const id = input.positional(0);
      const gateway = await requireGateway(input, terminal);
      const answer = fields(await kind.explained(gateway, id, () => gateway.request(pathOf(kind, id))));
      const tools = objectsOf(answer.tools);
      return printResult(input, terminal, answer, () =>
        tools.length === 0 ? `The ${kind.name} ${id} has no tools.` : table(terminal, COLUMNS, tools),
      );
    },
  };
}

const COLUMNS: TableColumns<Fields> = {
  TOOL: 'name',
  STATE: 'state',
  REASON: ({ reason }) => reason ?? '',
};

function approveCommand(kind: Kind): Command {
  const { name, positional, example } = kind;
  return {
    name: `${name} approve`,
    positionals: `${positional} [...tools]`,
    summary: `Approve the definitions of tools of a pinned ${name} that wait, or of all; \`${name} tools --json\` shows them`,
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
        await kind.explained(gateway, id, () => gateway.request(path, { method: 'POST', body })),
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
