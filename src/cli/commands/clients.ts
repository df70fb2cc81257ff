// `stagedoor gateway clients`: the MCP clients that may send users to the sign-in of a running gateway.

import { rightsOf, rightsOptions, wordsOption } from '../accounts/account-options.ts';
import type { Command, CommandInput } from '../command.ts';
import { UsageError } from '../failures.ts';
import { minute, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS, requireGateway } from '../remote/remote.ts';
import type { Terminal } from '../terminal.ts';

const PATH = '/auth/clients';

export const clients: Command = {
  name: 'gateway clients',
  positionals: '[action] [client]',
  summary: 'MCP clients that ask users to sign in: list, add <name>, or remove <id>',
  options: {
    '--redirect <uri>...': 'With add: where answers go, such as https://build.example/callback',
    '--scopes <list>':
      'With add: scopes it may ask for besides tools:call and gateway:read: gateway:write, admin',
    ...rightsOptions('the client may use'),
    '--confidential': 'With add: the client gets a secret, which is shown only once',
    ...CLIENT_OPTIONS,
  },
  examples: ['gateway clients', 'gateway clients add build --redirect https://build.example/callback'],
  run: async (input, terminal) => {
    const [action = 'list', client] = input.positionals;
    if (action === 'list') return listAll(input, terminal);
    if (client === undefined) throw new UsageError(`gateway clients ${action} needs a name or an id`);
    if (action === 'add') return add(client, input, terminal);
    if (action === 'remove') return remove(client, input, terminal);
    throw new UsageError(`the action must be list, add or remove, not "${action}"`);
  },
};

const COLUMNS: TableColumns<Fields> = {
  ID: 'client_id',
  NAME: 'name',
  SOURCE: 'source',
  SCOPES: 'scopes',
  'LAST USED': ({ last_used_at: at }) => minute(at ?? 'never'),
};

async function listAll(input: CommandInput, terminal: Terminal): Promise<number> {
  const gateway = await requireGateway(input, terminal);
  const found = objectsOf(await gateway.request(PATH));
  return printResult(input, terminal, found, () =>
    found.length === 0 ? 'No clients are registered.' : table(terminal, COLUMNS, found),
  );
}

async function add(name: string, input: CommandInput, terminal: Terminal): Promise<number> {
  const body = {
    name,
    redirect_uris: input.texts('redirect'),
    scopes: wordsOption(input, 'scopes'),
    ...rightsOf(input),
    confidential: input.has('confidential'),
  };
  if (body.redirect_uris.length === 0) throw new UsageError('gateway clients add needs --redirect');
  const gateway = await requireGateway(input, terminal);
  const made = fields(await gateway.request(PATH, { method: 'POST', body }));
  const secret =
    typeof made.client_secret === 'string' ? [`secret, shown only this once: ${made.client_secret}`] : [];
  return printResult(input, terminal, made, () =>
    [`the client "${made.name}" is added; its client_id: ${made.client_id}`, ...secret].join('\n'),
  );
}

async function remove(id: string, input: CommandInput, terminal: Terminal): Promise<number> {
  const gateway = await requireGateway(input, terminal);
  await gateway.request(`${PATH}/${encodeURIComponent(id)}`, { method: 'DELETE' });
  return printResult(input, terminal, { client_id: id, removed: true }, `the client ${id} is removed`);
}
