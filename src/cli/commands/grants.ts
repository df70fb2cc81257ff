// `stagedoor grant list | revoke`: what MCP clients may do for their users, at a running gateway or in its database.

import { ACCOUNT_CLIENT_OPTIONS, withAccountClient } from '../accounts/account-client.ts';
import type { Command } from '../command.ts';
import { minute, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, objectsOf } from '../remote/answers.ts';

export const grantList: Command = {
  name: 'grant list',
  summary: 'List what MCP clients may do for their users',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['grant list'],
  run: async (input, terminal) => {
    const path = '/auth/grants';
    const found = objectsOf(await withAccountClient(input, terminal, (client) => client.request(path)));
    return printResult(input, terminal, found, () =>
      found.length === 0 ? 'no MCP client has a grant' : table(terminal, COLUMNS, found),
    );
  },
};

const COLUMNS: TableColumns<Fields> = {
  ID: 'id',
  CLIENT: 'client_name',
  USER: 'username',
  SCOPES: 'scopes',
  RESOURCE: 'resource',
  'LAST USED': ({ last_used_at: at }) => minute(at ?? 'never'),
  EXPIRES: ({ expires_at: at }) => minute(at),
};

/** Ends a grant: at once at the gateway that gets the request, at others within 12 s. */
export const grantRevoke: Command = {
  name: 'grant revoke',
  positionals: '<id>',
  summary: 'End a grant: its MCP client has to ask its user again',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['grant revoke 8c0e7f64-35a5-4a0e-9f43-8a3d9d2f6a11'],
  run: async (input, terminal) => {
    const id = input.positional(0);
    const path = `/auth/grants/${encodeURIComponent(id)}`;
    await withAccountClient(input, terminal, (client) => client.request(path, { method: 'DELETE' }));
    return printResult(input, terminal, { id, revoked: true }, `the grant ${id} is ended`);
  },
};
