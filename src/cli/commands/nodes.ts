// `stagedoor node list | drain | resume`: the nodes of the deployment, as the gateway that answers sees them.

import type { Command } from '../command.ts';
import { duration, printable, printResult, table } from '../output.ts';
import { type Fields, fields, objectsOf, warningsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS, requireGateway } from '../remote/remote.ts';
import type { Terminal } from '../terminal.ts';

export const nodes: Command = {
  name: 'node list',
  summary: 'List the nodes that share the database; the one that answers comes first',
  options: CLIENT_OPTIONS,
  examples: ['node list', 'node list --json'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const answer = await gateway.request('/gateway/nodes');
    const all = objectsOf(fields(answer).nodes);
    const warnings = warningsOf(answer);
    const shown = warnings.length === 0 ? { nodes: all } : { nodes: all, warnings };
    const lines = warnings.map((warning) => `\nwarning: ${printable(warning)}`).join('');
    return printResult(input, terminal, shown, () => listing(terminal, all) + lines);
  },
};

export const drainNode = commandFor(
  'drain',
  'Make a node not ready, and open no new sessions there, until it is resumed or starts again',
  'is draining',
);

export const resumeNode = commandFor('resume', 'Make a drained node ready again', 'takes new sessions');

function commandFor(action: 'drain' | 'resume', summary: string, outcome: string): Command {
  const name = `node ${action}`;
  return {
    name,
    positionals: '<id>',
    summary,
    options: CLIENT_OPTIONS,
    examples: [`${name} local`],
    run: async (input, terminal) => {
      const id = input.positional(0);
      const gateway = await requireGateway(input, terminal);
      const path = `/gateway/nodes/${encodeURIComponent(id)}/${action}`;
      const node = fields(await gateway.request(path, { method: 'POST' }));
      return printResult(input, terminal, node, `the node ${id} ${outcome}`);
    },
  };
}

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
