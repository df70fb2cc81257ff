// `stagedoor api-key list | create | revoke`: API keys, at a running gateway or in its database.
// A key is shown once, when it is created, and stored nowhere.

import {
  ACCOUNT_CLIENT_OPTIONS,
  findApiKey,
  rightsColumns,
  warnOfRights,
  withAccountClient,
} from '../accounts/account-client.ts';
import { keyRightsOf, LIFETIME_MS, rightsOf, rightsOptions } from '../accounts/account-options.ts';
import { type Command, timeOf } from '../command.ts';
import { minute, printable, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';

export const apiKeyList: Command = {
  name: 'api-key list',
  summary: 'List the API keys',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['api-key list'],
  run: async (input, terminal) => {
    const path = '/auth/api-keys';
    const found = objectsOf(await withAccountClient(input, terminal, (client) => client.request(path)));
    return printResult(input, terminal, found, () =>
      found.length === 0 ? 'no API key exists' : table(terminal, keyColumns(found), found),
    );
  },
};

const keyColumns = (found: readonly Fields[]): TableColumns<Fields> => ({
  ID: 'id',
  NAME: 'name',
  PERMISSIONS: 'permissions',
  ...rightsColumns(found),
  STATE: keyState,
  EXPIRES: ({ expires_at: at }) => minute(at ?? 'never'),
  'LAST USED': ({ last_used_at: at }) => minute(at ?? 'never'),
  'CREATED BY': ({ created_by: user }) => user ?? 'the operator',
});

/** The state of a key in one word. `not valid`: the owner was disabled or deleted. */
function keyState({ is_active: isActive, expires_at: expiresAt }: Fields): string {
  if (isActive === true) return 'active';
  return typeof expiresAt === 'string' && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'not valid';
}

/** Creates a key. In a pipe, standard output is the key and nothing else. */
export const apiKeyCreate: Command = {
  name: 'api-key create',
  alias: 'gateway create-api-key',
  positionals: '<name>',
  summary: 'Create an API key and print it, only this once; in a pipe, the key and nothing else',
  options: {
    '--role <word>':
      'admin, user or a role of the settings: the key gets its permissions and lists as they are now; default user',
    '--permissions <list>': 'Of gateway:read, gateway:write, tools:call, admin; default those of the role',
    '--expires <time>':
      '2027-01-31T00:00:00Z; 2027-01-31, when that day begins in UTC; or 12h, 30d, 8w from now; default never',
    ...rightsOptions('the key may be used for'),
    ...ACCOUNT_CLIENT_OPTIONS,
  },
  examples: [
    'api-key create ci --expires 30d',
    'api-key create search-only --permissions tools:call --templates search',
    'api-key create readers --permissions tools:call --tools "files/read_*"',
    'api-key create desk --permissions tools:call --views support --templates none',
  ],
  run: async (input, terminal) => {
    const expires = input.text('expires');
    const body = {
      name: input.positional(0),
      ...keyRightsOf(input),
      ...rightsOf(input),
      expires_at: expires === undefined ? undefined : timeOf('expires', expires, LIFETIME_MS),
    };
    return withAccountClient(input, terminal, async (client) => {
      const record = fields(await client.request('/auth/api-keys', { method: 'POST', body }));
      // At once: the warnings ask the gateway more, and nothing else shows the key again.
      printResult(input, terminal, record, () =>
        terminal.columns === undefined ? printable(String(record.key)) : forPeople(record),
      );
      await warnOfRights(client, body, terminal);
      return 0;
    });
  },
};

function forPeople({
  name,
  key,
  permissions,
  templates,
  views,
  tools,
  expires_at: expiresAt,
}: Fields): string {
  const details = [
    [permissions].flat().join(', '),
    Array.isArray(templates) ? `templates ${templates.join(', ') || 'none'}` : 'all templates',
    ...(Array.isArray(views) ? [`views ${views.join(', ') || 'none'}`] : []),
    ...(Array.isArray(tools) ? [`tools ${tools.join(', ') || 'none'}`] : []),
    typeof expiresAt === 'string' ? `until ${minute(expiresAt)}` : 'until it is revoked',
  ];
  return [
    `The key "${name}" (${details.join('; ')}), shown only this once:`,
    '',
    `  ${key}`,
    '',
    'Send it as the header X-API-Key, or set STAGEDOOR_API_KEY for stagedoor itself.',
  ].join('\n');
}

/** Revokes a key: at once at the gateway that gets the request, at others within 10 s. */
export const apiKeyRevoke: Command = {
  name: 'api-key revoke',
  positionals: '<key>',
  summary: 'Revoke an API key, by its id or its name',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['api-key revoke 1f2e3d4c5b6a7988'],
  run: async (input, terminal) => {
    const key = await withAccountClient(input, terminal, async (client) => {
      const found = await findApiKey(client, idOf(input.positional(0)));
      await client.request(`/auth/api-keys/${found.id}`, { method: 'DELETE' });
      return found;
    });
    const done = { id: key.id, name: key.name, revoked: true };
    return printResult(input, terminal, done, `the key "${key.name}" (${key.id}) is revoked`);
  },
};

/** The id in the text: the user may paste the key itself, of which the id is a part. Its secret part is not sent. */
function idOf(written: string): string {
  return /^sd_([0-9a-f]{16})_/.exec(written)?.[1] ?? written;
}
