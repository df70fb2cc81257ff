// The accounts of a gateway or of a database, as the account commands see them: through the /auth routes of a running gateway,
// or in the database itself (local-client.ts). Records are those of the API in both cases, so `--json` prints the same.

import { nearMiss } from '../../config/nearest.ts';
import type { Role, Scope } from '../../domain/account.ts';
import { type Fields, fields } from '../answers.ts';
import { CommandFailure } from '../failures.ts';
import type { Remote } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

interface NewUserFields {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly role: Role;
  readonly templates: readonly string[] | undefined;
}

interface NewKeyFields {
  readonly name: string;
  readonly permissions: readonly Scope[];
  readonly templates: readonly string[] | undefined;
  /** ISO 8601. */
  readonly expiresAt: string | undefined;
}

/** Every method throws CommandFailure with the reason. Ids are those of the records. */
export interface AccountClient {
  users(): Promise<readonly Fields[]>;
  createUser(user: NewUserFields): Promise<Fields>;
  setPassword(id: string, password: string): Promise<Fields>;
  deleteUser(id: string): Promise<void>;
  apiKeys(): Promise<readonly Fields[]>;
  /** The record with `key` in it. */
  createApiKey(key: NewKeyFields): Promise<Fields>;
  revokeApiKey(id: string): Promise<void>;
  /** Names of the templates there are now. */
  templates(): Promise<readonly string[]>;
  close(): Promise<void>;
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

/** Accounts through a running gateway: its /auth routes, with the credentials of the gateway. */
export function remoteClient(gateway: Remote): AccountClient {
  const list = async (path: string): Promise<readonly Fields[]> => {
    const answer = await gateway.request(path);
    return Array.isArray(answer) ? answer.map(fields) : [];
  };
  const remove = async (path: string): Promise<void> => {
    await gateway.request(path, { method: 'DELETE' });
  };
  return {
    users: () => list('/auth/users'),
    createUser: async ({ username, email, password, role, templates }) => {
      const body = { username, email, password, is_superuser: role === 'admin', ...only({ templates }) };
      return fields(await gateway.request('/auth/users', { method: 'POST', body }));
    },
    setPassword: async (id, password) =>
      fields(
        await gateway.request(`/auth/users/${encodeURIComponent(id)}`, {
          method: 'PATCH',
          body: { password },
        }),
      ),
    deleteUser: (id) => remove(`/auth/users/${encodeURIComponent(id)}`),
    apiKeys: () => list('/auth/api-keys'),
    createApiKey: async ({ name, permissions, templates, expiresAt }) => {
      const body = { name, permissions, ...only({ templates, expires_at: expiresAt }) };
      return fields(await gateway.request('/auth/api-keys', { method: 'POST', body }));
    },
    revokeApiKey: (id) => remove(`/auth/api-keys/${encodeURIComponent(id)}`),
    templates: async () => Object.keys(fields(fields(await gateway.request('/gateway/registry')).templates)),
    close: async () => {}, // every request was a connection of its own
  };
}

/** Without the fields that are undefined. */
function only(values: Fields): Fields {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Warns of names that are no template yet. It is only a warning, since the template may be registered later. */
export async function warnOfUnknownTemplates(
  client: Pick<AccountClient, 'templates'>,
  wanted: readonly string[] | undefined,
  terminal: Pick<Terminal, 'note'>,
): Promise<void> {
  if (wanted === undefined || wanted.length === 0) return;
  const known = await knownTo(client);
  if (known === undefined) return;
  for (const name of wanted.filter((each) => !known.includes(each))) {
    const meant = nearMiss(name, known);
    const guess = meant === undefined ? '' : `; did you mean "${meant}"?`;
    terminal.note(`warning: template "${name}" does not exist yet${guess}`);
  }
}

/** Undefined when the list cannot be read: the command has succeeded, and this is only advice about it. */
async function knownTo(client: Pick<AccountClient, 'templates'>): Promise<readonly string[] | undefined> {
  try {
    return await client.templates();
  } catch (error) {
    if (error instanceof CommandFailure) return undefined;
    throw error;
  }
}
