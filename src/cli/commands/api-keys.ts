// `stagedoor gateway api-keys`: every API key, without its secret.

import { ACCOUNT_CLIENT_OPTIONS, type AccountClient, withAccountClient } from '../accounts/account-client.ts';
import { API_KEY_HEADINGS, apiKeyRow, hasExpired } from '../accounts/records.ts';
import type { Fields } from '../answers.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const apiKeys: CommandDefinition = {
  name: 'gateway api-keys',
  positionals: '',
  summary: 'List the API keys',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['gateway api-keys'],
  run: async (input, terminal) => {
    const nowMs = Date.now();
    const { found, disabled } = await withAccountClient(input, terminal, async (client) => {
      const keys = await client.apiKeys();
      return { found: keys, disabled: await disabledOwners(client, keys, nowMs) };
    });
    const { json, table } = await import('../output.ts');
    if (input.switch('json')) terminal.print(json(found));
    else if (found.length === 0) terminal.print('There is no API key.');
    else
      terminal.print(
        table(
          terminal,
          API_KEY_HEADINGS,
          found.map((key) => apiKeyRow(key, { nowMs, disabled })),
        ),
      );
    return 0;
  },
};

/** Users are asked for only when a key is not valid for another reason than its time. */
async function disabledOwners(
  client: AccountClient,
  keys: readonly Fields[],
  nowMs: number,
): Promise<ReadonlySet<string>> {
  if (keys.every((key) => key.is_active !== false || hasExpired(key, nowMs))) return new Set();
  const users = await client.users();
  return new Set(users.filter((user) => user.is_active === false).map((user) => String(user.username)));
}
