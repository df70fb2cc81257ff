// `stagedoor node list | drain | resume`: the nodes of the deployment, as the gateway that answers sees them.

import type { Command } from '../command.ts';
import { duration, printable, printResult, table } from '../output.ts';
import { type Fields, fields, objectsOf, warningsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import type { Remote } from '../remote/remote.ts';
import { type AwaitedState, awaited, waitOption, waitSecondsIn } from '../remote/request-command.ts';
import type { Terminal } from '../terminal.ts';

export const nodeList: Command = {
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

const DRAINED: AwaitedState = {
  until: 'its calls have ended',
  isReached: ({ in_flight: calls }) => calls === 0,
  textOf: ([id], { id: listed }) =>
    listed === undefined
      ? `the node ${id} has ended, and so have its calls`
      : `the node ${id} is drained: its calls have ended`,
  failureOf: ([id], { in_flight: calls }, seconds) =>
    `the node ${id} has calls in flight after ${seconds} s: ${calls}; it stays drained`,
};

export const nodeDrain: Command = {
  name: 'node drain',
  positionals: '<id>',
  summary: 'Make a node not ready, and open no new sessions there, until it is resumed or starts again',
  options: { ...waitOption(DRAINED), ...CLIENT_OPTIONS },
  examples: ['node drain local', 'node drain local --wait 60'],
  run: async (input, terminal) => {
    const waitSeconds = waitSecondsIn(input);
    const gateway = await requireGateway(input, terminal);
    const id = input.positional(0);
    const node = await changed(gateway, id, 'drain');
    if (waitSeconds === undefined) return printResult(input, terminal, node, `the node ${id} is draining`);
    const read = async () => lifeIn(await gateway.request('/gateway/nodes'), node);
    const last = await awaited(input, DRAINED, { waitSeconds, first: node, read });
    return printResult(input, terminal, last, DRAINED.textOf(input.positionals, last));
  },
};

export const nodeResume: Command = {
  name: 'node resume',
  positionals: '<id>',
  summary: 'Make a drained node ready again',
  options: CLIENT_OPTIONS,
  examples: ['node resume local'],
  run: async (input, terminal) => {
    const id = input.positional(0);
    const node = await changed(await requireGateway(input, terminal), id, 'resume');
    return printResult(input, terminal, node, `the node ${id} takes new sessions`);
  },
};

async function changed(gateway: Remote, id: string, action: 'drain' | 'resume'): Promise<Fields> {
  return fields(
    await gateway.request(`/gateway/nodes/${encodeURIComponent(id)}/${action}`, { method: 'POST' }),
  );
}

/** The record of the same start of a node; without an id when it is no longer listed: it has ended, and so have its calls. */
function lifeIn(answer: unknown, { life }: Fields): Fields {
  return objectsOf(fields(answer).nodes).find((node) => node.life === life) ?? { life, in_flight: 0 };
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
