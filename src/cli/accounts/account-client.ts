// The accounts of a gateway or of a database for the account commands, and the choice between the two:
// through the /auth routes of a running gateway, or in the database itself (local-client.ts). Both return
// records of the API, so `--json` prints the same.

import { type Fields, fields, listOf } from '../answers.ts';
import type { CommandInput, OptionTable } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { namedGateway, type Remote, seekGateway } from '../remote.ts';
import { DATABASE_OPTIONS } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';
import type { AccountClient } from './local-client.ts';

/** Accounts through a running gateway: its /auth routes, with the credentials of the gateway. */
function remoteClient(gateway: Remote): AccountClient {
  const list = async (path: string) => listOf(await gateway.request(path));
  const remove = async (path: string, id: string): Promise<void> => {
    await gateway.request(`${path}/${encodeURIComponent(id)}`, { method: 'DELETE' });
  };
  return {
    users: () => list('/auth/users'),
    createUser: async ({ role, ...user }) => {
      const body = { ...user, is_superuser: role === 'admin' };
      return fields(await gateway.request('/auth/users', { method: 'POST', body }));
    },
    setPassword: async (id, password) => {
      const path = `/auth/users/${encodeURIComponent(id)}`;
      return fields(await gateway.request(path, { method: 'PATCH', body: { password } }));
    },
    deleteUser: (id) => remove('/auth/users', id),
    apiKeys: () => list('/auth/api-keys'),
    createApiKey: async ({ name, permissions, templates, expiresAt }) => {
      const body = { name, permissions, templates, expires_at: expiresAt };
      return fields(await gateway.request('/auth/api-keys', { method: 'POST', body }));
    },
    revokeApiKey: (id) => remove('/auth/api-keys', id),
  };
}

export async function findUser(
  client: AccountClient,
  username: string,
): Promise<Fields & { readonly id: string }> {
  const wanted = username.toLowerCase();
  const user = (await client.users()).find((each) => String(each.username).toLowerCase() === wanted);
  if (user === undefined) throw new CommandFailure(`user "${username}" not found`);
  return { ...user, id: String(user.id) };
}

/** The key with that id, or with that name when only one key has it. */
export async function findApiKey(
  client: AccountClient,
  idOrName: string,
): Promise<Fields & { readonly id: string }> {
  const keys = await client.apiKeys();
  const found = keys.find(({ id }) => id === idOrName);
  const named = keys.filter(({ name }) => name === idOrName);
  const key = found ?? named[0];
  if (key === undefined) throw new CommandFailure(`API key "${idOrName}" not found`);
  if (found === undefined && named.length > 1) {
    const ids = named.map(({ id }) => String(id)).join(', ');
    throw new CommandFailure(`${named.length} API keys are called "${idOrName}"; name one by its id: ${ids}`);
  }
  return { ...key, id: String(key.id) };
}

export function shownTemplatesOf({ templates }: Fields): unknown {
  if (!Array.isArray(templates)) return 'all';
  return templates.length === 0 ? 'none' : templates;
}

// --- the choice ------------------------------------------------------------------------------------------------------------

export const PASSWORD_OPTION: OptionTable = {
  '--password <value>':
    'Password; "-" reads standard input, default a hidden prompt. Other users can read a value given here',
};

export const ACCOUNT_CLIENT_OPTIONS: OptionTable = {
  '--url <url>':
    'URL of the gateway; default STAGEDOOR_URL, else the gateway in the background here, else http://127.0.0.1:8080 or :8000, else the database',
  '--local': 'Use the database, even when a gateway runs',
  ...DATABASE_OPTIONS,
  '--json': 'Print records as JSON',
};

/**
 * Lets `work` use the account client: of the gateway that `--url` or STAGEDOOR_URL names, else of the gateway
 * that answers at a usual address, else of the database. `--local` and `--database` choose the database directly.
 * The choice is written to standard error.
 */
export async function withAccountClient<T>(
  input: CommandInput,
  terminal: Terminal,
  work: (client: AccountClient) => Promise<T>,
): Promise<T> {
  const url = input.text('url');
  const isLocal = input.has('local') || input.has('database');
  if (isLocal && url !== undefined) {
    throw new UsageError('--url cannot be combined with --local or --database');
  }
  if (!isLocal) {
    const remote = namedGateway(url, terminal) ?? (await seekGateway(terminal));
    if (remote !== undefined) {
      terminal.note(`using the gateway ${remote.url}`);
      return work(remoteClient(remote));
    }
  }
  // Loaded on demand: it loads a database driver.
  const { withLocalClient } = await import('./local-client.ts');
  return withLocalClient(input, terminal, work);
}
