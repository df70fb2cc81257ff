// `stagedoor connection list | add | confirm | remove`: the connected accounts at servers that want OAuth.

import type { Command } from '../command.ts';
import { minute, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';

const PATH = '/gateway/connections';

export const connectionList: Command = {
  name: 'connection list',
  summary: 'List the connected accounts at servers that want OAuth',
  options: CLIENT_OPTIONS,
  examples: ['connection list'],
  run: async (input, terminal) => {
    const found = objectsOf(await (await requireGateway(input, terminal)).request(PATH));
    return printResult(input, terminal, found, () =>
      found.length === 0 ? 'no account is connected' : table(terminal, COLUMNS, found),
    );
  },
};

const COLUMNS: TableColumns<Fields> = {
  ID: 'id',
  TEMPLATES: 'templates',
  USER: ({ username, user_id, who }) => String(who === 'shared' ? 'all (shared)' : (username ?? user_id)),
  STATE: ({ state, reason }) => (reason === null ? String(state) : `${state}: ${reason}`),
  SERVER: 'resource',
  CONNECTED: ({ connected_at: at }) => minute(at),
};

export const connectionAdd: Command = {
  name: 'connection add',
  positionals: '<template> <id>',
  summary:
    'Print the address at which a browser connects an account: your own, or the shared one for an admin',
  options: CLIENT_OPTIONS,
  examples: ['connection add mail mail-1'],
  run: async (input, terminal) => {
    const body = { template: input.positional(0), instance_id: input.positional(1) };
    const gateway = await requireGateway(input, terminal);
    const address = await gateway.request(PATH, { method: 'POST', body });
    return printResult(input, terminal, address, () => `open ${fields(address).url} in a browser`);
  },
};

export const connectionConfirm: Command = {
  name: 'connection confirm',
  positionals: '<template> <id>',
  summary: 'Use the authorization server that a server names, in place of the previous one',
  options: {
    '--issuer <url>': 'The new one; default the one that the server names now',
    ...CLIENT_OPTIONS,
  },
  examples: ['connection confirm mail mail-1'],
  run: async (input, terminal) => {
    const issuer = input.text('issuer');
    const target = { template: input.positional(0), instance_id: input.positional(1) };
    const gateway = await requireGateway(input, terminal);
    const body = issuer === undefined ? target : { ...target, issuer };
    const confirmed = await gateway.request(`${PATH}/confirm`, { method: 'POST', body });
    return printResult(
      input,
      terminal,
      confirmed,
      `${fields(confirmed).issuer} is used from now on; accounts there have to be connected`,
    );
  },
};

export const connectionRemove: Command = {
  name: 'connection remove',
  positionals: '<id>',
  summary: 'Disconnect an account: its tokens are deleted here and revoked at its server',
  options: CLIENT_OPTIONS,
  examples: ['connection remove 5d41402abc4b2a76b9719d911017c592'],
  run: async (input, terminal) => {
    const id = input.positional(0);
    const gateway = await requireGateway(input, terminal);
    await gateway.request(`${PATH}/${encodeURIComponent(id)}`, { method: 'DELETE' });
    return printResult(input, terminal, { id, removed: true }, `the account ${id} is disconnected`);
  },
};
