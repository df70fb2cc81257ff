// `stagedoor gateway create-api-key`: a new API key. The key itself is shown this once and stored nowhere.

import { ACCOUNT_CLIENT_OPTIONS, withAccountClient } from '../accounts/account-client.ts';
import { readExpiry } from '../accounts/expiry.ts';
import { list, minute } from '../accounts/records.ts';
import { warnOfUnknownTemplates } from '../accounts/unknown-templates.ts';
import type { Fields } from '../answers.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. Where a program reads, standard output is the key and nothing else. */
export const createApiKey: CommandDefinition = {
  name: 'gateway create-api-key',
  positionals: '<name>',
  summary: 'Create an API key and print it, this once; where a program reads, the key and nothing else',
  options: [
    { flags: '--role <word>', description: 'admin or user: all permissions of that role; default user' },
    {
      flags: '--permissions <list>',
      description: 'Of gateway:read, gateway:write, tools:call, admin; default those of the role',
    },
    {
      flags: '--expires <time>',
      description:
        '2027-01-31T00:00:00Z; 2027-01-31, when that day begins in UTC; or 12h, 30d, 8w from now; default never',
    },
    { flags: '--templates <list>', description: 'Templates the key may be used for; default all' },
    ...ACCOUNT_CLIENT_OPTIONS,
  ],
  examples: [
    'gateway create-api-key ci --expires 30d',
    'gateway create-api-key search-only --permissions tools:call --templates search',
  ],
  run: async (input, terminal) => {
    const { keyNameOf, permissionsOf, templatesOf } = await import('../accounts/account-options.ts');
    const expires = input.text('expires');
    const fields = {
      name: keyNameOf(input),
      permissions: permissionsOf(input),
      templates: templatesOf(input),
      expiresAt: expires === undefined ? undefined : readExpiry(expires),
    };
    const record = await withAccountClient(input, terminal, async (client) => {
      const made = await client.createApiKey(fields);
      await warnOfUnknownTemplates(client, fields.templates, terminal);
      return made;
    });
    const { json } = await import('../output.ts');
    if (input.switch('json')) terminal.print(json(record));
    else terminal.print(terminal.columns === undefined ? String(record.key) : forPeople(record));
    return 0;
  },
};

function forPeople({ name, key, permissions, templates, expires_at: expiresAt }: Fields): string {
  const facts = [
    list(permissions),
    Array.isArray(templates) ? `templates ${list(templates)}` : 'all templates',
    typeof expiresAt === 'string' ? `until ${minute(expiresAt)}` : 'until it is revoked',
  ];
  return [
    `The key "${name}" (${facts.join('; ')}), shown only this once:`,
    '',
    `  ${key}`,
    '',
    'Send it as the header X-API-Key, or set STAGEDOOR_API_KEY for stagedoor itself.',
  ].join('\n');
}
