// `stagedoor gateway revoke`: ends an API key, at once on the gateway that is asked.

import { ACCOUNT_CLIENT_OPTIONS, findApiKey, withAccountClient } from '../accounts/account-client.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const revoke: CommandDefinition = {
  name: 'gateway revoke',
  positionals: '<key>',
  summary: 'Revoke an API key, by its id or its name',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['gateway revoke 1f2e3d4c5b6a7988'],
  run: async (input, terminal) => {
    const key = await withAccountClient(input, terminal, async (client) => {
      const found = await findApiKey(client, idOf(input.positional(0)));
      await client.revokeApiKey(found.id);
      return found;
    });
    const { json } = await import('../output.ts');
    const done = { id: key.id, name: key.name, revoked: true };
    terminal.print(input.switch('json') ? json(done) : `the key "${key.name}" (${key.id}) is revoked`);
    return 0;
  },
};

/** Whoever has the key at hand may paste it: its id is in it, and its secret part goes no further. */
function idOf(written: string): string {
  return /^sd_([0-9a-f]{16})_/.exec(written)?.[1] ?? written;
}
