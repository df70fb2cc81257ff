// The list of connected accounts. How they are connected is in authorization-server/connections.spec.ts.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../../../src/persistence/memory/memory-store.ts';
import { oauthKey } from '../../../../src/persistence/oauth-rows.ts';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('connected accounts');
const store = new MemoryStore();
const connections = { address: { issuer: 'http://127.0.0.1:8080', isPublic: false } };
const app = appFor(test, () => startWithAccounts({ gateway: { store, backendAccounts: connections } }));

async function connect(owner: string, resource: string): Promise<void> {
  const value = {
    owner,
    issuer: resource,
    resource,
    endpoint: resource,
    clientId: 'c',
    accessToken: 'a',
    scopes: [],
  };
  await store.oauth.save({
    kind: 'connection',
    key: oauthKey('connection', `${owner} ${resource}`),
    ...(owner === 'shared' ? {} : { userId: owner }),
    createdAt: new Date().toISOString(),
    value: JSON.stringify(value),
  });
}

test('each is shown with the templates that use it, and with no look-alike', async () => {
  const auth = { mode: 'oauth', who: 'shared' } as const;
  const register = (template: string, endpoint: string, id = template) =>
    app.gateway.register(template, { id, endpoint, auth });
  await register('one', 'http://127.0.0.1:1/mcp');
  await register('one', 'http://127.0.0.1:1/mcp', 'two');
  await register('ten', 'http://127.0.0.1:10/mcp');
  await app.gateway.register('own', {
    id: 'own',
    endpoint: 'http://127.0.0.1:1',
    auth: { mode: 'oauth', who: 'user' },
  });
  const { body: user } = await app.as(app.admin, 'GET', '/auth/me');
  await connect('shared', 'http://127.0.0.1:1');
  await connect('shared', 'http://127.0.0.1:10/mcp');
  await connect(String(Object(user).id), 'http://127.0.0.1:1');
  const { status, text } = await app.as(app.admin, 'GET', '/gateway/connections');
  assert.is(status, 200);
  const shown = JSON.parse(text).map(({ who, resource, templates }: Record<string, unknown>) => [
    ...[who, resource, templates],
  ]);
  assert.equal(
    shown.toSorted((a: unknown[], b: unknown[]) => (String(a) < String(b) ? -1 : 1)),
    [
      ['shared', 'http://127.0.0.1:1', ['one']],
      ['shared', 'http://127.0.0.1:10/mcp', ['ten']],
      ['user', 'http://127.0.0.1:1', ['own']],
    ],
  );
});

test.run();
