// `stagedoor gateway create-user`: a new user, at a running gateway or in its database.

import { ACCOUNT_CLIENT_OPTIONS, withAccountClient } from '../accounts/account-client.ts';
import { PASSWORD_OPTION, readPassword } from '../accounts/password-option.ts';
import { warnOfUnknownTemplates } from '../accounts/unknown-templates.ts';
import type { CommandDefinition } from '../command.ts';

/** Row of the command table. */
export const createUser: CommandDefinition = {
  name: 'gateway create-user',
  positionals: '<username>',
  summary: 'Create a user who can log in',
  options: [
    PASSWORD_OPTION,
    { flags: '--role <word>', description: 'admin or user; default user' },
    { flags: '--email <address>', description: 'Default <username>@localhost' },
    { flags: '--templates <list>', description: 'Templates the user may use; default all' },
    ...ACCOUNT_CLIENT_OPTIONS,
  ],
  examples: [
    'gateway create-user ada --role admin',
    'gateway create-user ci --password - --templates search,files < password.txt',
  ],
  run: async (input, terminal) => {
    const { emailOf, roleOf, templatesOf, usernameOf } = await import('../accounts/account-options.ts');
    const username = usernameOf(input);
    const facts = {
      username,
      email: emailOf(input, username),
      role: roleOf(input) ?? 'user',
      templates: templatesOf(input),
    };
    return withAccountClient(input, terminal, async (client) => {
      const password = await readPassword(input, terminal, {
        question: `Password of ${username}`,
        isNew: true,
      });
      const user = await client.createUser({ ...facts, password });
      await warnOfUnknownTemplates(client, facts.templates, terminal);
      const { json } = await import('../output.ts');
      const article = facts.role === 'admin' ? 'an admin' : 'a user';
      terminal.print(input.switch('json') ? json(user) : `${user.username} is ${article} now`);
      return 0;
    });
  },
};
