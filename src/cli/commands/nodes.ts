// `stagedoor gateway nodes`: the nodes of the deployment, as the gateway that answers sees them.

import { type Fields, fields, listOf } from '../answers.ts';
import type { Command } from '../command.ts';
import { duration, printResult, table } from '../output.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

export const nodes: Command = {
  name: 'gateway nodes',
  summary: 'List the nodes that share the database; the one that answers comes first',
  options: CLIENT_OPTIONS,
  examples: ['gateway nodes', 'gateway nodes --json'],
  run: async (input, terminal) => {
    const gateway = await gatewayOf(input, terminal);
    const all = listOf(fields(await gateway.request('/gateway/nodes')).nodes);
    return printResult(input, terminal, { nodes: all }, () => listing(terminal, all));
  },
};

function listing(terminal: Terminal, all: readonly Fields[]): string {
  return table(
    terminal,
    {
      NODE: 'id',
      LIFE: 'life',
      STATE: ({ state, draining }) => (draining === true ? `${state}, draining` : state),
      ADDRESS: ({ address }) => address ?? '-',
      VERSION: 'version',
      UP: ({ since }) => duration((Date.now() - Date.parse(String(since))) / 1000),
      PROGRAMS: 'programs',
      'IN FLIGHT': 'in_flight',
    },
    all,
  );
}
