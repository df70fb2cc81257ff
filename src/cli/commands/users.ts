// `stagedoor gateway users`: every user.

import { ACCOUNT_CLIENT_OPTIONS, withAccountClient } from '../accounts/account-client.ts';
import { USER_HEADINGS, userRow } from '../accounts/records.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const users: CommandDefinition = {
  name: 'gateway users',
  positionals: '',
  summary: 'List the users',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['gateway users'],
  run: async (input, terminal) => {
    const found = await withAccountClient(input, terminal, (client) => client.users());
    const { json, table } = await import('../output.ts');
    if (input.switch('json')) terminal.print(json(found));
    else if (found.length === 0)
      terminal.print('There is no user. The first start of a gateway makes an admin.');
    else terminal.print(table(terminal, USER_HEADINGS, found.map(userRow)));
    return 0;
  },
};
