// Users, API keys, logins and the account of the caller, over HTTP.

import { hash, randomBytes } from 'node:crypto';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { parseKey } from '../../../../src/auth/accounts/api-keys.ts';
import { proofOf } from '../../../../src/auth/secrets/proof.ts';
import { jsonRequest, openRaw, readAll } from '../../../helpers/clients/raw-http.ts';
import { eventually } from '../../../helpers/eventually.ts';
import { PASSWORD, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the account routes');
const app = appFor(test, () => startWithAccounts());
test.before(() => app.serve('demo', 'one'));

const ask = (method: string, path: string, body?: unknown) => app.as(app.admin, method, path, { body });
const listOf = (text: string): Record<string, unknown>[] => JSON.parse(text);
const create = async (over: object) =>
  ask('POST', '/auth/users', { username: 'x', email: 'x@localhost', password: PASSWORD, ...over });

test('create a user that can log in', async () => {
  const { status, body, headers, text } = await create({ username: 'Grace.H', email: 'grace@navy.mil' });
  assert.is(status, 201);
  assert.is(headers.get('location'), `/auth/users/${body.id}`);
  const { id, created_at, updated_at, ...rest } = body;
  assert.match(String(id), /^[0-9a-f-]{36}$/);
  assert.is(new Date(String(created_at)).toISOString(), created_at);
  assert.is(updated_at, created_at);
  assert.equal(rest, {
    ...{ username: 'Grace.H', email: 'grace@navy.mil', role: 'user', is_superuser: false },
    ...{ templates: null, views: null, tools: null, is_active: true },
  });
  assert.not.match(text, /password|hash|\$2b/i);
  assert.equal((await ask('GET', `/auth/users/${id}`)).body, body);
  const login = await app.login('grace.h');
  assert.is((await app.as(login, 'GET', '/stats')).status, 200);
  assert.is((await create({ username: 'GRACE.h' })).outcome, '400 DUPLICATE_USERNAME');
});

for (const [fields, role] of [
  [{ is_superuser: true }, 'admin'],
  [{ is_superuser: false }, 'user'],
  [{ role: 'admin' }, 'admin'],
  [{ role: 'user' }, 'user'],
  [{ role: 'admin', is_superuser: true }, 'admin'],
  [{ templates: null }, 'user'],
] as const) {
  test(`create a user with ${JSON.stringify(fields)}`, async () => {
    const username = `role-${Object.keys(fields).join('-')}-${role}`;
    const { status, body } = await create({ username, ...fields });
    assert.equal([status, body.role, body.is_superuser], [201, role, role === 'admin']);
  });
}

test('change a user, with effect on its next request', async () => {
  const { id } = await app.createUser('hopper');
  const login = await app.login('hopper');
  const mine = () => app.as(login, 'GET', '/auth/me');
  assert.equal((await mine()).body.templates, null);
  const change = { email: 'h@example.org', templates: ['demo'] };
  const changed = await ask('PATCH', `/auth/users/${id}`, change);
  const found = [changed.status, changed.body.email, changed.body.templates];
  assert.equal(found, [200, 'h@example.org', ['demo']]);
  assert.equal((await mine()).body.templates, ['demo']);
  for (const templates of [[], null])
    assert.equal((await ask('PATCH', `/auth/users/${id}`, { templates })).body.templates, templates);
  assert.equal((await mine()).body.templates, null);
  const scopes = ['gateway:read'];
  assert.equal((await ask('PATCH', `/auth/users/${id}`, { scopes })).body.scopes, scopes);
  assert.equal((await mine()).body.scopes, scopes);
  assert.is((await ask('PATCH', `/auth/users/${id}`, { scopes: null })).body.scopes, undefined);
  assert.equal((await mine()).body.scopes, ['gateway:read', 'tools:call']);
  const promoted = await ask('PATCH', `/auth/users/${id}`, { is_superuser: true });
  assert.equal([promoted.body.role, promoted.body.is_superuser], ['admin', true]);
  assert.is((await mine()).status, 401, 'a new role needs a new token');
});

test('give users and API keys views and tools, and show callers what their lists have in common', async () => {
  const lists = { views: ['desk', 'support'], tools: ['demo/*', '!demo/rm?'] };
  const { body: user } = await create({ username: 'lists', ...lists });
  assert.equal({ views: user.views, tools: user.tools }, lists);
  const login = await app.login('lists');
  const mine = async () => {
    const { templates, views, tools } = (await app.as(login, 'GET', '/auth/me')).body;
    return { templates, views, tools };
  };
  assert.equal(await mine(), { templates: null, ...lists });
  await ask('PATCH', `/auth/users/${user.id}`, { views: null, tools: [] });
  assert.equal(await mine(), { templates: null, views: null, tools: [] });
  const { body: key } = await createKey(lists);
  assert.equal({ views: key.views, tools: key.tools }, lists);
  const change = { views: null, tools: ['demo/echo'] };
  const changed = await ask('PATCH', `/auth/api-keys/${key.id}`, change);
  assert.equal([changed.status, changed.body.views, changed.body.tools], [200, null, ['demo/echo']]);
  assert.equal((await app.as({ 'x-api-key': String(key.key) }, 'GET', '/auth/me')).body.tools, ['demo/echo']);
  assert.is((await ask('PATCH', '/auth/api-keys/none', change)).outcome, '404 API_KEY_NOT_FOUND');
  for (const wrong of [{ tools: ['demo'] }, { tools: ['de*/x'] }, { tools: 'demo/*' }, { views: ['A'] }]) {
    assert.is((await createKey(wrong)).outcome, '422 VALIDATION_ERROR', JSON.stringify(wrong));
    assert.is((await ask('PATCH', `/auth/users/${user.id}`, wrong)).outcome, '422 VALIDATION_ERROR');
  }
});

test('let no admin with a list of tools or views manage accounts', async () => {
  for (const lists of [{ tools: ['*/*'] }, { views: ['desk'] }]) {
    const { key } = (await createKey({ permissions: ['admin'], ...lists })).body;
    const caller = { 'x-api-key': String(key) };
    assert.is((await app.as(caller, 'GET', '/auth/users')).outcome, '403 INSUFFICIENT_PERMISSIONS');
    assert.is((await app.as(caller, 'GET', '/auth/me')).status, 200);
  }
});

test('refuse to delete, demote or disable the last admin', async () => {
  const app = await startWithAccounts();
  const users: unknown = JSON.parse((await app.as(app.admin, 'GET', '/auth/users')).text);
  const { id } = Array.isArray(users) ? users[0] : assert.unreachable();
  for (const [method, body] of [
    ['DELETE', undefined],
    ['PATCH', { role: 'user' }],
    ['PATCH', { is_superuser: false }],
    ['PATCH', { is_active: false }],
    ['PATCH', { templates: ['demo'] }],
    ['PATCH', { scopes: ['admin'] }],
  ] as const)
    assert.is((await app.as(app.admin, method, `/auth/users/${id}`, { body })).outcome, '400 LAST_ADMIN');
  assert.is((await app.as(app.admin, 'GET', '/auth/users')).status, 200);
  await app.close();
});

test('delete a user with its tokens and API keys', async () => {
  const { id } = await app.createUser('leaving');
  const login = await app.login('leaving');
  const owned = { name: 'k', permissions: ['tools:call'], ownerId: id } as const;
  const { key } = await app.auth.accounts.createApiKey(owned);
  assert.is((await app.as({ 'x-api-key': key }, 'GET', '/auth/me')).status, 200);
  const first = await ask('DELETE', `/auth/users/${id}`);
  assert.equal([first.status, first.text], [204, '']);
  assert.is((await app.as(login, 'GET', '/auth/me')).status, 401);
  assert.is((await app.as({ 'x-api-key': key }, 'GET', '/auth/me')).status, 401);
  assert.is((await ask('DELETE', `/auth/users/${id}`)).outcome, '404 USER_NOT_FOUND');
});

test('refuse new passwords with 429 while too many are being hashed', async () => {
  const app = await startWithAccounts({ passwordCost: 9 });
  const fresh = (name: string) => ({ username: name, email: 'x@localhost', password: PASSWORD });
  const { body } = await app.as(app.admin, 'POST', '/auth/users', { body: fresh('many') });
  for (const again of [
    (round: number) => app.as(app.admin, 'POST', '/auth/users', { body: fresh(`many-${round}`) }),
    () => app.as(app.admin, 'PATCH', `/auth/users/${body.id}`, { body: { password: 'another horse' } }),
  ]) {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, round) => again(round)));
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0 && refused.length <= 38);
    for (const { outcome, body: refusal, headers } of refused) {
      assert.equal([outcome, headers.get('retry-after')], ['429 TOO_MANY_ATTEMPTS', '2']);
      assert.is(refusal.detail, 'Too many passwords are being checked at once; try again later.');
    }
  }
  await app.close();
});

// --- API keys ------------------------------------------------------------------------------------------------------

const createKey = (over: object) =>
  ask('POST', '/auth/api-keys', { name: 'ci', permissions: ['tools:call'], ...over });
const listed = async (): Promise<Record<string, unknown>[]> => {
  const { text } = await ask('GET', '/auth/api-keys');
  const keys: unknown = JSON.parse(text);
  return Array.isArray(keys) ? keys : [];
};

test('show an API key once', async () => {
  const { status, body, headers } = await createKey({
    templates: ['demo'],
    expires_at: '2999-01-01T01:00:00+01:00',
  });
  assert.is(status, 201);
  assert.is(headers.get('cache-control'), 'no-store');
  const { id, key, created_at, ...rest } = body;
  assert.match(String(key), /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  assert.is(new Date(String(created_at)).toISOString(), created_at);
  assert.equal(rest, {
    ...{ name: 'ci', permissions: ['tools:call'], templates: ['demo'], views: null, tools: null },
    ...{ expires_at: '2999-01-01T00:00:00.000Z', last_used_at: null, is_active: true, created_by: 'admin' },
  });
  const record = (await listed()).find((one) => one.id === id);
  assert.equal(record, { id, created_at, ...rest });
  assert.not.match(JSON.stringify(await listed()), new RegExp(String(key).slice(-43)));
});

test('list users and API keys in pages, each once, even if the last one of a page is deleted meanwhile', async () => {
  for (const name of ['p1', 'p2', 'p3', 'p4']) {
    await ask('POST', '/auth/api-keys', { name, permissions: ['tools:call'] });
    // A deleted record of a page is found by its time, so that this one must be its own.
    const atMs = Date.now();
    await eventually(
      async () => Date.now(),
      (nowMs) => nowMs > atMs,
    );
  }
  for (const path of ['/auth/users', '/auth/api-keys']) {
    const all = listOf((await ask('GET', path)).text).map(({ id }) => id);
    const seen: unknown[] = [];
    let cursor: string | null = '';
    for (let pages = 0; cursor !== null && pages < 100; pages += 1) {
      const query: string = cursor === '' ? '?limit=2' : `?limit=2&cursor=${encodeURIComponent(cursor)}`;
      const { text, headers } = await ask('GET', `${path}${query}`);
      assert.is(
        headers.get('x-total-count'),
        String(all.length - (pages === 0 || path === '/auth/users' ? 0 : 1)),
      );
      const ids = listOf(text).map(({ id }) => id);
      seen.push(...ids);
      cursor = headers.get('x-next-cursor');
      if (pages === 0 && path === '/auth/api-keys') await ask('DELETE', `${path}/${ids.at(-1)}`);
    }
    assert.equal(seen, all);
    assert.is((await ask('GET', `${path}?limit=0`)).outcome, '422 VALIDATION_ERROR');
  }
});

test('refuse lists of rights that are too long, wherever they are written', async () => {
  const user = await ask('POST', '/auth/users', { username: 'long', email: 'l@h', password: 'long enough' });
  const { id } = (await createKey({})).body;
  const places = [
    ['POST', '/auth/api-keys', { name: 'k', permissions: ['tools:call'] }],
    ['PATCH', `/auth/api-keys/${id}`, {}],
    ['POST', '/auth/users', { username: 'longer', email: 'l@h', password: 'long enough' }],
    ['PATCH', `/auth/users/${user.body.id}`, {}],
  ] as const;
  const lists = {
    templates: Array.from({ length: 200 }, (_, n) => `${'t'.repeat(100)}${n}`),
    tools: Array(100).fill(`a/${'x'.repeat(200)}`),
  };
  for (const [method, path, body] of places) {
    const { outcome, text } = await ask(method, path, { ...body, ...lists });
    assert.is(outcome, '422 VALIDATION_ERROR', path);
    assert.match(text, 'List should have at most 16384 characters');
    for (const list of ['templates', 'tools']) assert.match(text, `["body","${list}"]`);
  }
});

test('create API keys that are accepted in either header until they are revoked', async () => {
  const { id, key } = (await createKey({})).body;
  const call = (headers: Record<string, string>) =>
    app.as(headers, 'POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  assert.is((await call({ 'x-api-key': String(key) })).status, 200);
  assert.is((await call({ authorization: `Bearer ${key}` })).status, 200);
  assert.is((await call({ 'x-api-key': String(key), authorization: `Bearer ${key}` })).status, 200);
  assert.is((await call({ 'x-api-key': String(key), ...app.user })).status, 401, 'two different callers');
  assert.type((await listed()).find((one) => one.id === id)?.last_used_at, 'string');
  const first = await ask('DELETE', `/auth/api-keys/${id}`);
  assert.equal([first.status, first.text], [204, '']);
  assert.is((await call({ 'x-api-key': String(key) })).outcome, '401 INVALID_CREDENTIALS');
  assert.is((await ask('DELETE', `/auth/api-keys/${id}`)).outcome, '404 API_KEY_NOT_FOUND');
});

test('refuse a call whose body took seconds, if its API key was revoked meanwhile', async () => {
  for (const [path, isRevoked, status] of [
    ['/mcp/demo/tools/call', true, 401],
    ['/mcp/demo/tools/call', false, 200],
    ['/mcp/demo', true, 401],
  ] as const) {
    const { id, key } = (await createKey({})).body;
    const headers = {
      'X-API-Key': String(key),
      Connection: 'close',
      Accept: 'application/json, text/event-stream',
    };
    const text = jsonRequest(`POST ${path}`, '{"name":"name"}', headers);
    const socket = await openRaw(app.port);
    socket.write(text.slice(0, -1));
    await eventually(listed, (keys) => keys.some((one) => one.id === id && one.last_used_at !== null));
    const later = performance.now() + 5_001;
    const clock = mock.method(performance, 'now', () => later);
    if (isRevoked) await ask('DELETE', `/auth/api-keys/${id}`);
    socket.write('}');
    assert.match(await readAll(socket), new RegExp(`^HTTP/1.1 ${status} `), `${path} ${isRevoked}`);
    clock.mock.restore();
  }
});

test('remove duplicate permissions of an API key, and accept null for absent fields', async () => {
  const { status, body } = await createKey({
    ...{ permissions: ['tools:call', 'gateway:read', 'tools:call'], templates: null, expires_at: null },
  });
  const found = [status, body.permissions, body.templates, body.expires_at];
  assert.equal(found, [201, ['tools:call', 'gateway:read'], null, null]);
});

test('limit an API key to the current permissions of its owner', async () => {
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

// --- logins and the own account --------------------------------------------------------------------------------------

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const form = async (body: string, headers: Record<string, string> = FORM) =>
  app.ask('POST', '/auth/login', { body, headers });
const json = async (body: unknown) => app.ask('POST', '/auth/login', { body });
const written = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
const ADA = { username: 'ada', password: PASSWORD };

test('issue a token for a form or JSON, also with other fields, a charset or an invalid Authorization header', async () => {
  const { status, body, headers } = await form(written(ADA));
  assert.is(status, 200);
  const names = ['access_token', 'expires_in', 'proof_key_id', 'proof_secret', 'token_type'];
  assert.equal(Object.keys(body).sort(), names);
  assert.equal([body.token_type, body.expires_in], ['bearer', 3_600]);
  assert.is(headers.get('cache-control'), 'no-store');
  const me = await app.as({ authorization: `Bearer ${body.access_token}` }, 'GET', '/auth/me');
  assert.equal([me.status, me.body.name], [200, 'ada']);
  const charset = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' };
  const oauth = { grant_type: 'password', scope: 'admin', client_id: 'x', client_secret: '' };
  for (const answer of [
    await json({ ...ADA, ...oauth, nested: { a: 1 } }),
    await form(written({ ...ADA, ...oauth }), charset),
    await form(written(ADA), { ...FORM, authorization: 'Bearer nonsense' }),
  ])
    assert.is(answer.status, 200);
});

test('prove a key and a token for the connection that asks, and unknown ids alike', async () => {
  const own = { address: '127.0.0.1', port: Number(new URL(app.url).port) };
  const nonce = randomBytes(16).toString('base64url');
  const prove = async (key_id: string) => {
    const { status, body } = await app.ask('POST', '/auth/proof', { body: { key_id, nonce } });
    return [status, body.proof];
  };
  const { id = '', secret = '' } = parseKey(String((await app.key(['tools:call']))['x-api-key'])) ?? {};
  assert.equal(await prove(id), [200, proofOf(hash('sha256', secret), nonce, own)]);
  const { body } = await json(ADA);
  assert.equal(await prove(String(body.proof_key_id)), [200, proofOf(String(body.proof_secret), nonce, own)]);
  const [status, proof] = await prove('0123456789abcdef');
  assert.is(status, 200);
  assert.match(String(proof), /^[0-9a-f]{64}$/);
  assert.not.match((await ask('GET', '/gateway/audit')).text, 'auth/proof');
});

test('refuse a login of another media type with 415, and one of 70 kB with 413', async () => {
  const { status, body } = await form(written(ADA), { 'content-type': 'text/plain' });
  assert.equal([status, body.error_code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
  assert.match(String(body.detail), /a form or application\/json/);
  assert.is((await form(`username=ada&password=${'x'.repeat(70_000)}`)).outcome, '413 PAYLOAD_TOO_LARGE');
});

test('refuse a login of more than a hundred fields, whose check would take longer than that of its password', async () => {
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, field) => [`f${field}`, 'x']));
  for (const { status, body } of [
    await form(written({ ...ADA, ...many })),
    await json({ ...ADA, ...many }),
  ]) {
    assert.equal([status, body.error_code], [422, 'VALIDATION_ERROR']);
    assert.match(JSON.stringify(body.detail), /more than 100 values/);
  }
});

test('refuse a question for a proof with many values or of 70 kB, which anyone may ask', async () => {
  const { key_id, nonce } = { key_id: '0123456789abcdef', nonce: randomBytes(16).toString('base64url') };
  const prove = (more: unknown) => app.ask('POST', '/auth/proof', { body: { key_id, nonce, more } });
  assert.match((await prove(Array(101).fill(0))).text, 'more than 100 values');
  assert.is((await prove('x'.repeat(70_000))).outcome, '413 PAYLOAD_TOO_LARGE');
});

test('refuse the right password after ten failed logins; successful logins are not counted', async () => {
  await app.createUser('guessed');
  const right = { username: 'guessed', password: PASSWORD };
  for (let attempt = 0; attempt < 11; attempt += 1) assert.is((await json(right)).status, 200);
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const { outcome, headers } = await json({ ...right, password: 'wrong horse' });
    assert.equal([outcome, headers.get('www-authenticate')], ['401 INVALID_CREDENTIALS', 'Bearer']);
  }
  const refused = await json(right);
  assert.is(refused.outcome, '429 TOO_MANY_ATTEMPTS');
  assert.ok(Number(refused.headers.get('retry-after')) >= 1);
});

test('show a user and an admin their accounts', async () => {
  const ada = (await app.as(app.user, 'GET', '/auth/me')).body;
  assert.equal(ada, {
    ...{ id: `user:${ada.user_id}`, kind: 'user', name: 'ada', user_id: ada.user_id },
    ...{ scopes: ['gateway:read', 'tools:call'], templates: null, views: null, tools: null },
  });
  const root = (await app.as(app.admin, 'GET', '/auth/me')).body;
  assert.is(root.name, 'admin');
  assert.equal(root.scopes, ['gateway:read', 'gateway:write', 'tools:call', 'admin']);
});

test('show an API key its account', async () => {
  const key = await app.key(['gateway:read'], ['zeta', 'alpha']);
  const { id, ...rest } = (await app.as(key, 'GET', '/auth/me')).body;
  assert.match(String(id), /^key:[0-9a-f]{16}$/);
  assert.equal(rest, {
    ...{ kind: 'api-key', name: 'gateway:read', user_id: null, scopes: ['gateway:read'] },
    ...{ templates: ['alpha', 'zeta'], views: [], tools: null },
  });
});

test('without authentication serve an anonymous admin, who changes accounts only locally and not from a web page', async () => {
  const app = await startApp();
  const { status, body } = await app.ask('GET', '/auth/me');
  assert.equal([status, body.id, body.kind, body.user_id], [200, 'anonymous', 'anonymous', null]);
  assert.is((await app.ask('POST', '/auth/logout')).status, 204);
  const key = { name: 'k', permissions: ['admin'] };
  assert.is((await app.ask('POST', '/auth/api-keys', { body: key })).status, 201);
  for (const headers of [{ origin: app.url }, { via: '1.1 proxy' }]) {
    const refused = await app.ask('POST', '/auth/api-keys', { body: key, headers: { ...headers } });
    assert.is(refused.outcome, '403 INSUFFICIENT_PERMISSIONS');
    assert.equal(refused.body.required_permissions, ['admin']);
  }
  assert.equal(body.scopes, ['gateway:read', 'gateway:write', 'tools:call', 'admin']);
  await app.close();
});

test.run();
