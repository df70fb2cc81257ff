// `stagedoor gateway set-password`: a new password for a user. Made for a lost one, so it works on the database, where
// nobody needs to be logged in, unless `--url` names a gateway. STAGEDOOR_URL, which may be set for good, does not.

import { DATABASE_CLIENT_OPTIONS, findUser, withAccountClient } from '../accounts/account-client.ts';
import { PASSWORD_OPTION, readPassword } from '../accounts/password-option.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const setPassword: CommandDefinition = {
  name: 'gateway set-password',
  positionals: '<username>',
  summary: 'Give a user a new password, in the database, which needs no login; --url asks a gateway instead',
  options: [PASSWORD_OPTION, ...DATABASE_CLIENT_OPTIONS],
  examples: ['gateway set-password admin', 'gateway set-password ada --url https://gateway.example.com'],
  run: async (input, terminal) => {
    const { usernameOf } = await import('../accounts/account-options.ts');
    const username = usernameOf(input);
    const work = withAccountClient(
      input,
      terminal,
      async (client) => {
        const { id } = await findUser(client, username);
        const question = `New password of ${username}`;
        return client.setPassword(id, await readPassword(input, terminal, { question, isNew: true }));
      },
      { prefersDatabase: true },
    );
    const user = await work;
    const { json } = await import('../output.ts');
    const where = input.text('url') === undefined ? 'running gateways' : 'other gateways of its database';
    const text = `${user.username} has a new password; tokens of before are void, on ${where} within 10 s`;
    terminal.print(input.switch('json') ? json(user) : text);
    return 0;
  },
};
