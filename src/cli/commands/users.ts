// `stagedoor user list | create | set | set-password | delete`: users, at a running gateway or in its database; `user link |
// unlink`: at a running gateway, which knows the providers.

import { USERNAME_PATTERN } from '../../domain/accounts/account.ts';
import { definedFields } from '../../domain/json/json.ts';
import {
  ACCOUNT_CLIENT_OPTIONS,
  findUser,
  PASSWORD_OPTION,
  rightsColumns,
  warnOfRights,
  withAccountClient,
} from '../accounts/account-client.ts';
import {
  readPassword,
  rightsOf,
  rightsOptions,
  roleOf,
  SCOPES_OPTION,
  scopesOption,
} from '../accounts/account-options.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../failures.ts';
import { minute, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';

export const userList: Command = {
  name: 'user list',
  summary: 'List the users',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['user list'],
  run: async (input, terminal) => {
    const answer = await withAccountClient(input, terminal, (client) => client.request('/auth/users'));
    const found = objectsOf(answer);
    return printResult(input, terminal, found, () =>
      found.length === 0
        ? 'no user exists; the first start of a gateway creates an admin'
        : table(terminal, userColumns(found), found),
    );
  },
};

/** The columns of the list of users. The log and the audit log use the id: `user:<id>`. */
const userColumns = (found: readonly Fields[]): TableColumns<Fields> => ({
  USER: 'username',
  ROLE: 'role',
  'E-MAIL': 'email',
  ...(found.some(({ scopes }) => Array.isArray(scopes)) && {
    SCOPES: ({ scopes }: Fields) => scopes ?? 'of the role',
  }),
  ...rightsColumns(found),
  STATE: ({ is_active: isActive }) => (isActive === false ? 'disabled' : 'active'),
  CREATED: ({ created_at: at }) => minute(at),
  ID: 'id',
});

export const userCreate: Command = {
  name: 'user create',
  alias: 'gateway create-user',
  positionals: '<username>',
  summary: 'Create a user who can log in',
  options: {
    ...PASSWORD_OPTION,
    '--role <word>': 'admin, user or a role of the settings (roles); default user',
    '--email <address>': 'Default <username>@localhost',
    ...SCOPES_OPTION,
    ...rightsOptions('the user may use'),
    ...ACCOUNT_CLIENT_OPTIONS,
  },
  examples: [
    'user create ada --role admin',
    'user create ci --password - --templates search,files < password.txt',
  ],
  run: async (input, terminal) => {
    const username = input.positional(0);
    if (!new RegExp(USERNAME_PATTERN).test(username))
      throw new UsageError(
        'a user name has 1 to 64 letters from A to Z, digits and . _ @ -, and begins with a letter or a digit',
      );
    const details = {
      username,
      // A user name may be an address already.
      email: input.text('email') ?? (username.includes('@') ? username : `${username}@localhost`),
      role: roleOf(input) ?? 'user',
      ...definedFields({ scopes: scopesOption(input) }),
      ...rightsOf(input),
    };
    return withAccountClient(input, terminal, async (client) => {
      const question = `Password of ${username}`;
      const password = await readPassword(input, terminal, { question, isNew: true });
      const body = { ...details, password };
      const user = fields(await client.request('/auth/users', { method: 'POST', body }));
      await warnOfRights(client, details, terminal);
      return printResult(
        input,
        terminal,
        user,
        `created the user ${user.username} with the role ${details.role}`,
      );
    });
  },
};

export const userSetPassword: Command = {
  name: 'user set-password',
  positionals: '<username>',
  summary: 'Set a new password for a user; --local replaces a lost one in the database, without a login',
  options: { ...PASSWORD_OPTION, ...ACCOUNT_CLIENT_OPTIONS },
  examples: ['user set-password admin --local', 'user set-password ada --url https://gateway.example.com'],
  run: async (input, terminal) => {
    const username = input.positional(0);
    const user = await withAccountClient(input, terminal, async (client) => {
      const { id } = await findUser(client, username);
      const question = `New password of ${username}`;
      const password = await readPassword(input, terminal, { question, isNew: true });
      const change = { method: 'PATCH', body: { password } } as const;
      return fields(await client.request(`/auth/users/${id}`, change));
    });
    const text = `changed the password of ${user.username}; earlier tokens become void on all gateways within 10 s`;
    return printResult(input, terminal, user, text);
  },
};

/** Changes a user: only the fields that the options name. */
export const userSet: Command = {
  name: 'user set',
  positionals: '<username>',
  summary: 'Change the role, the rights, the e-mail address or the state of a user',
  options: {
    '--role <word>': 'admin, user or a role of the settings (roles)',
    ...SCOPES_OPTION,
    ...rightsOptions('the user may use', '"all" for all'),
    '--email <address>': 'E-mail address',
    '--disable': 'The user can no longer log in; tokens and keys of the user become void',
    '--enable': 'The user can log in again',
    ...ACCOUNT_CLIENT_OPTIONS,
  },
  examples: [
    'user set ada --role admin',
    'user set ci --templates search,files',
    'user set ci --tools "search/*,files/read_*"',
    'user set ci --scopes tools:call',
    'user set ci --disable',
  ],
  run: async (input, terminal) => {
    input.refuseBoth('enable', 'disable');
    const rights = rightsOf(input);
    const body = definedFields({
      role: roleOf(input),
      email: input.text('email'),
      scopes: scopesOption(input),
      ...rights,
      is_active: input.has('enable') ? true : input.has('disable') ? false : undefined,
    });
    if (Object.keys(body).length === 0) throw new UsageError('nothing to change: give at least one option');
    const user = await withAccountClient(input, terminal, async (client) => {
      const { id } = await findUser(client, input.positional(0));
      const changed = fields(await client.request(`/auth/users/${id}`, { method: 'PATCH', body }));
      const views = Array.isArray(changed.templates) ? undefined : rights.views;
      await warnOfRights(client, { ...rights, views }, terminal);
      return changed;
    });
    return printResult(input, terminal, user, () => table(terminal, userColumns([user]), [user]));
  },
};

export const userLink: Command = {
  name: 'user link',
  positionals: '<username>',
  summary: 'Let a user sign in with an account of an identity provider (auth.providers)',
  options: {
    '--issuer <url>': 'Issuer of the provider, as in auth.providers',
    '--subject <id>': 'Id of the user there, not a name; the page that refuses a taken name shows it',
    ...CLIENT_OPTIONS,
  },
  examples: ['user link ada --issuer https://login.example.com --subject 248289761001'],
  run: async (input, terminal) => {
    const [issuer, subject] = [input.text('issuer'), input.text('subject')];
    if (issuer === undefined || subject === undefined)
      throw new UsageError('user link needs --issuer and --subject');
    const gateway = await requireGateway(input, terminal);
    const { id } = await findUser(gateway, input.positional(0));
    const path = `/auth/users/${id}/link`;
    const user = fields(await gateway.request(path, { method: 'POST', body: { issuer, subject } }));
    const text = `${user.username} can sign in at ${issuer}; each sign-in gives the role of the groups there`;
    return printResult(input, terminal, user, text);
  },
};

export const userUnlink: Command = {
  name: 'user unlink',
  positionals: '<username>',
  summary: 'End the link of a user with an account of an identity provider, and the sign-ins of the user',
  options: CLIENT_OPTIONS,
  examples: ['user unlink ada'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const { id, username } = await findUser(gateway, input.positional(0));
    await gateway.request(`/auth/users/${id}/link`, { method: 'DELETE' });
    const done = { id, username, linked: false };
    return printResult(input, terminal, done, `${username} signs in here only; API keys go on`);
  },
};

export const userDelete: Command = {
  name: 'user delete',
  positionals: '<username>',
  summary: 'Delete a user and the API keys of that user',
  options: ACCOUNT_CLIENT_OPTIONS,
  examples: ['user delete ada'],
  run: async (input, terminal) => {
    const username = input.positional(0);
    const user = await withAccountClient(input, terminal, async (client) => {
      const found = await findUser(client, username);
      await client.request(`/auth/users/${found.id}`, { method: 'DELETE' });
      return found;
    });
    const done = { id: user.id, username: user.username, deleted: true };
    return printResult(input, terminal, done, `${user.username} is deleted`);
  },
};
