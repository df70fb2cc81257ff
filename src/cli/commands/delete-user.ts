// `stagedoor gateway delete-user`: removes a user; tokens and API keys of that user are void.

import { ACCOUNT_CLIENT_OPTIONS, findUser, withAccountClient } from '../accounts/account-client.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const deleteUser: CommandDefinition = {
  name: 'gateway delete-user',
  positionals: '<username>',
  summary: 'Delete a user together with the API keys they made',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['gateway delete-user ada'],
  run: async (input, terminal) => {
    const { usernameOf } = await import('../accounts/account-options.ts');
    const username = usernameOf(input);
    const user = await withAccountClient(input, terminal, async (client) => {
      const found = await findUser(client, username);
      await client.deleteUser(found.id);
      return found;
    });
    const { json } = await import('../output.ts');
    const done = { id: user.id, username: user.username, deleted: true };
    terminal.print(input.switch('json') ? json(done) : `${user.username} is deleted`);
    return 0;
  },
};
