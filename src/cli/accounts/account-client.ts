// The accounts of a gateway or of a database, as the account commands see them: through the /auth routes of a running gateway,
// or in the database itself (local-client.ts). Records are those of the API in both cases, so `--json` prints the same.

import type { NewApiKey, NewUser } from '../../auth/accounts.ts';
import { didYouMean } from '../../config/nearest.ts';
import { type Fields, fields, listOf } from '../answers.ts';
import { templateNames, unlessRefused } from '../client-options.ts';
import { CommandFailure } from '../failures.ts';
import type { Remote } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

/** Every method throws CommandFailure with the reason. Ids are those of the records. */
export interface AccountClient {
  users(): Promise<readonly Fields[]>;
  createUser(user: NewUser): Promise<Fields>;
  setPassword(id: string, password: string): Promise<Fields>;
  deleteUser(id: string): Promise<void>;
  apiKeys(): Promise<readonly Fields[]>;
  /** The record with `key` in it. */
  createApiKey(key: NewApiKey): Promise<Fields>;
  revokeApiKey(id: string): Promise<void>;
  /** Names of the existing templates. */
  templates(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Accounts through a running gateway: its /auth routes, with the credentials of the gateway. */
export function remoteClient(gateway: Remote): AccountClient {
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
    templates: () => templateNames(gateway),
    close: async () => {}, // every request was a connection of its own
  };
}

/** The user of that name, in any case. */
export async function findUser(
  client: AccountClient,
  username: string,
): Promise<Fields & { readonly id: string }> {
  const wanted = username.toLowerCase();
  const user = (await client.users()).find((each) => String(each.username).toLowerCase() === wanted);
  if (user === undefined) throw new CommandFailure(`there is no user "${username}"`);
  return { ...user, id: String(user.id) };
}

/** The key with that id or, when only one has it, that name. */
export async function findApiKey(
  client: AccountClient,
  idOrName: string,
): Promise<Fields & { readonly id: string }> {
  const keys = await client.apiKeys();
  const found = keys.find(({ id }) => id === idOrName);
  const named = keys.filter(({ name }) => name === idOrName);
  const key = found ?? named[0];
  if (key === undefined) throw new CommandFailure(`there is no API key "${idOrName}"`);
  if (found === undefined && named.length > 1) {
    const ids = named.map(({ id }) => String(id)).join(', ');
    throw new CommandFailure(`${named.length} API keys are called "${idOrName}"; name one by its id: ${ids}`);
  }
  return { ...key, id: String(key.id) };
}

/** The templates of a user or a key, for people. */
export function shownTemplatesOf({ templates }: Fields): unknown {
  if (!Array.isArray(templates)) return 'all';
  return templates.length === 0 ? 'none' : templates;
}

/** Warns of names that are no template yet. It is only a warning, since the template may be registered later. */
export async function warnOfUnknownTemplates(
  client: Pick<AccountClient, 'templates'>,
  wanted: readonly string[] = [],
  terminal: Pick<Terminal, 'note'>,
): Promise<void> {
  if (wanted.length === 0) return;
  const known = await unlessRefused(client.templates());
  if (known === undefined) return;
  for (const name of wanted.filter((each) => !known.includes(each))) {
    const warning = `warning: template "${name}" does not exist yet`;
    terminal.note([warning, didYouMean(name, known) ?? []].flat().join('; '));
  }
}
