import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http-accounts.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the route of the own account');
const started = startWithAccounts();
test.after(async () => (await started).close());

test('tells a user and an admin what they may do', async () => {
  const app = await started;
  const ada = (await app.as(app.user, 'GET', '/auth/me')).body;
  assert.equal(ada, {
    ...{ id: `user:${ada.user_id}`, kind: 'user', name: 'ada', user_id: ada.user_id },
    ...{ scopes: ['gateway:read', 'tools:call'], templates: null, hourly_limit: 1_000 },
    ...{ role: 'user', auth_enabled: true },
  });
  const root = (await app.as(app.admin, 'GET', '/auth/me')).body;
  assert.equal([root.name, root.role, root.hourly_limit], ['admin', 'admin', null]);
  assert.equal(root.scopes, ['gateway:read', 'gateway:write', 'tools:call', 'admin']);
});

test('tells a key whose it is and where it may be used', async () => {
  const app = await started;
  const key = await app.key(['gateway:read'], ['zeta', 'alpha']);
  const { id, ...rest } = (await app.as(key, 'GET', '/auth/me')).body;
  assert.match(String(id), /^key:[0-9a-f]{16}$/);
  assert.equal(rest, {
    ...{ kind: 'api-key', name: 'gateway:read', user_id: null, scopes: ['gateway:read'] },
    ...{ templates: ['alpha', 'zeta'], hourly_limit: 5_000, role: null, auth_enabled: true },
  });
});

test('tells everybody that they are nobody in particular while authentication is off', async () => {
  const app = await startApp();
  const { status, body } = await app.ask('GET', '/auth/me');
  assert.equal([status, body.id, body.kind, body.user_id], [200, 'anonymous', 'anonymous', null]);
  assert.equal([body.role, body.auth_enabled], ['admin', false]);
  assert.equal(body.scopes, ['gateway:read', 'gateway:write', 'tools:call', 'admin']);
  await app.close();
});

test.run();
