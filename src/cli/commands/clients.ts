// `stagedoor client list | add | remove`: the MCP clients that may send users to the sign-in of a running gateway.

import { rightsOf, rightsOptions, wordsOption } from '../accounts/account-options.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../failures.ts';
import { minute, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';

const PATH = '/auth/clients';

export const clientList: Command = {
  name: 'client list',
  summary: 'List the MCP clients that may ask users to sign in',
  options: CLIENT_OPTIONS,
  examples: ['client list'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const found = objectsOf(await gateway.request(PATH));
    return printResult(input, terminal, found, () =>
      found.length === 0 ? 'no client is registered' : table(terminal, COLUMNS, found),
    );
  },
};

const COLUMNS: TableColumns<Fields> = {
  ID: 'client_id',
  NAME: 'name',
  SOURCE: 'source',
  SCOPES: 'scopes',
  'LAST USED': ({ last_used_at: at }) => minute(at ?? 'never'),
};

export const clientAdd: Command = {
  name: 'client add',
  positionals: '<name>',
  summary: 'Register an MCP client that asks users to sign in, for clients that cannot do it themselves',
  options: {
    '--redirect <uri>...': 'Where answers go, such as https://build.example/callback',
    '--scopes <list>': 'Scopes it may ask for besides tools:call and gateway:read: gateway:write, admin',
    ...rightsOptions('the client may use'),
    '--confidential': 'The client gets a secret, which is shown only once',
    ...CLIENT_OPTIONS,
  },
  examples: ['client add build --redirect https://build.example/callback'],
  run: async (input, terminal) => {
    const body = {
      name: input.positional(0),
      redirect_uris: input.texts('redirect'),
      scopes: wordsOption(input, 'scopes'),
      ...rightsOf(input),
      confidential: input.has('confidential'),
    };
    if (body.redirect_uris.length === 0) throw new UsageError('client add needs --redirect');
    const gateway = await requireGateway(input, terminal);
    const made = fields(await gateway.request(PATH, { method: 'POST', body }));
    const secret =
      typeof made.client_secret === 'string' ? [`secret, shown only this once: ${made.client_secret}`] : [];
    return printResult(input, terminal, made, () =>
      [`the client "${made.name}" is added; its client_id: ${made.client_id}`, ...secret].join('\n'),
    );
  },
};

export const clientRemove: Command = {
  name: 'client remove',
  positionals: '<id>',
  summary: 'Remove an MCP client, and end what users allowed it',
  options: CLIENT_OPTIONS,
  examples: ['client remove build-1f0c'],
  run: async (input, terminal) => {
    const id = input.positional(0);
    const gateway = await requireGateway(input, terminal);
    await gateway.request(`${PATH}/${encodeURIComponent(id)}`, { method: 'DELETE' });
    return printResult(input, terminal, { client_id: id, removed: true }, `the client ${id} is removed`);
  },
};
