// `stagedoor session list | end`: the open sessions of MCP clients at a running gateway.

import { definedFields } from '../../domain/json/json.ts';
import type { Command } from '../command.ts';
import { duration, printResult, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS, TEMPLATE_OPTION } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { pagedEntries } from '../remote/paged-entries.ts';
import type { Terminal } from '../terminal.ts';

export const sessionList: Command = {
  name: 'session list',
  summary: 'List open sessions of MCP clients and where they are bound; an admin sees those of all callers',
  options: { ...TEMPLATE_OPTION, ...CLIENT_OPTIONS },
  examples: ['session list', 'session list --template search', 'session list --json'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const query = new URLSearchParams(definedFields({ template: input.text('template') }));
    const all = await pagedEntries(gateway, '/gateway/sessions', 'sessions', { query });
    return printResult(input, terminal, { sessions: all }, () => listing(terminal, all));
  },
};

export const sessionEnd: Command = {
  name: 'session end',
  positionals: '<id>',
  summary: 'End a session of an MCP client, which has to initialize again',
  options: CLIENT_OPTIONS,
  examples: ['session end 0123456789ab'],
  run: async (input, terminal) => {
    const id = input.positional(0);
    const gateway = await requireGateway(input, terminal);
    await gateway.request(`/gateway/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
    return printResult(input, terminal, { id, ended: true }, `the session ${id} is ended`);
  },
};

function listing(terminal: Terminal, all: readonly Fields[]): string {
  if (all.length === 0) return 'no sessions are open';
  const since = (at: unknown) => duration((Date.now() - Date.parse(String(at))) / 1000);
  return table(
    terminal,
    {
      SESSION: 'id',
      OF: ({ principal_name: name, principal }) => name ?? principal,
      CLIENT: ({ client }) =>
        [fields(client).name, fields(client).version].filter((word) => typeof word === 'string').join(' '),
      'BOUND TO': ({ bindings }) =>
        objectsOf(bindings).map(({ template, instance_id: id }) => `${template}/${id}`),
      'OPEN FOR': ({ created_at: at }) => since(at),
      'UNUSED FOR': ({ last_used_at: at }) => since(at),
    },
    all,
  );
}
