import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http-accounts.ts';
import { appFor } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of API keys');
const app = appFor(test, () => startWithAccounts());
test.before(() => app.serve('demo', 'one'));

const ask = async (method: string, path: string, body?: unknown) => {
  return app.as(app.admin, method, path, body === undefined ? {} : { body });
};
const create = (over: object) =>
  ask('POST', '/auth/api-keys', { name: 'ci', permissions: ['tools:call'], ...over });
const listed = async (): Promise<Record<string, unknown>[]> => {
  const { text } = await ask('GET', '/auth/api-keys');
  const keys: unknown = JSON.parse(text);
  return Array.isArray(keys) ? keys : [];
};

test('show a key once', async () => {
  const { status, body, headers } = await create({
    templates: ['demo'],
    expires_at: '2999-01-01T01:00:00+01:00',
  });
  assert.is(status, 201);
  assert.is(headers.get('cache-control'), 'no-store');
  const { id, key, created_at, ...rest } = body;
  assert.match(String(key), /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  assert.is(new Date(String(created_at)).toISOString(), created_at);
  assert.equal(rest, {
    ...{ name: 'ci', permissions: ['tools:call'], templates: ['demo'] },
    ...{ expires_at: '2999-01-01T00:00:00.000Z', last_used_at: null, is_active: true, created_by: 'admin' },
  });
  const record = (await listed()).find((one) => one.id === id);
  assert.equal(record, { id, created_at, ...rest });
  assert.not.match(JSON.stringify(await listed()), new RegExp(String(key).slice(-43)));
});

test('make keys that work in either header, until they are revoked', async () => {
  const { id, key } = (await create({})).body;
  const call = (headers: Record<string, string>) =>
    app.as(headers, 'POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  assert.is((await call({ 'x-api-key': String(key) })).status, 200);
  assert.is((await call({ authorization: `Bearer ${key}` })).status, 200);
  assert.is((await call({ 'x-api-key': String(key), authorization: `Bearer ${key}` })).status, 200);
  assert.is((await call({ 'x-api-key': String(key), ...app.user })).status, 401, 'two different callers');
  assert.type((await listed()).find((one) => one.id === id)?.last_used_at, 'string');
  const first = await ask('DELETE', `/auth/api-keys/${id}`);
  assert.equal([first.status, first.text], [204, '']);
  const after = await call({ 'x-api-key': String(key) });
  assert.equal([after.status, after.body.error_code], [401, 'INVALID_CREDENTIALS']);
  const second = await ask('DELETE', `/auth/api-keys/${id}`);
  assert.equal([second.status, second.body.error_code], [404, 'API_KEY_NOT_FOUND']);
});

test('take a permission twice for once, and null for nothing', async () => {
  const { status, body } = await create({
    ...{ permissions: ['tools:call', 'gateway:read', 'tools:call'], templates: null, expires_at: null },
  });
  assert.equal(
    [status, body.permissions, body.templates, body.expires_at],
    [201, ['tools:call', 'gateway:read'], null, null],
  );
});

test('make keys that do what their owner may do now', async () => {
  const { id } = await app.createUser('deputy', 'admin');
  const made = await app.as(await app.login('deputy'), 'POST', '/auth/api-keys', {
    body: { name: 'deputy', permissions: ['gateway:write', 'gateway:read'] },
  });
  const key = { 'x-api-key': String(made.body.key) };
  const write = () => app.as(key, 'PATCH', '/gateway/templates/demo', { body: {} });
  assert.is((await write()).status, 200);
  await ask('PATCH', `/auth/users/${id}`, { role: 'user' });
  const cut = await write();
  assert.equal([cut.status, cut.body.required_permissions], [403, ['gateway:write']]);
  assert.is((await app.as(key, 'GET', '/stats')).status, 200);
  await ask('PATCH', `/auth/users/${id}`, { is_active: false });
  assert.is((await app.as(key, 'GET', '/stats')).status, 401);
  const record = (await listed()).find((one) => one.name === 'deputy');
  assert.equal([record?.is_active, record?.created_by], [false, 'deputy']);
});

test.run();
