// Accounts by way of a running gateway: its /auth endpoints.

import { type Fields, fields } from '../answers.ts';
import type { Remote } from '../remote.ts';
import type { AccountClient } from './account-client.ts';

/** The desk of a gateway. Credentials are the gateway's, see request-credentials.ts. */
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
