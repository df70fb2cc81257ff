import * as assert from 'uvu/assert';
import { PASSWORD, startWithAccounts } from '../../helpers/http-accounts.ts';
import { appFor } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of users');
const app = appFor(test, () => startWithAccounts());

const ask = async (method: string, path: string, body?: unknown) => {
  return app.as(app.admin, method, path, body === undefined ? {} : { body });
};
const create = async (over: object) =>
  ask('POST', '/auth/users', { username: 'x', email: 'x@localhost', password: PASSWORD, ...over });

test('create a user, who may log in then', async () => {
  const { status, body, headers, text } = await create({ username: 'Grace.H', email: 'grace@navy.mil' });
  assert.is(status, 201);
  assert.is(headers.get('location'), `/auth/users/${body.id}`);
  const { id, created_at, updated_at, ...rest } = body;
  assert.match(String(id), /^[0-9a-f-]{36}$/);
  assert.is(new Date(String(created_at)).toISOString(), created_at);
  assert.is(updated_at, created_at);
  assert.equal(rest, {
    ...{ username: 'Grace.H', email: 'grace@navy.mil', role: 'user', is_superuser: false },
    ...{ templates: null, is_active: true },
  });
  assert.not.match(text, /password|hash|\$2b/i);
  assert.equal((await ask('GET', `/auth/users/${id}`)).body, body);
  const login = await app.login('grace.h');
  assert.is((await app.as(login, 'GET', '/stats')).status, 200);
});

for (const [fields, role] of [
  [{ is_superuser: true }, 'admin'],
  [{ is_superuser: false }, 'user'],
  [{ role: 'admin' }, 'admin'],
  [{ role: 'user' }, 'user'],
  [{ role: 'admin', is_superuser: true }, 'admin'],
  [{ templates: null }, 'user'],
] as const) {
  test(`understand ${JSON.stringify(fields)}`, async () => {
    const username = `role-${Object.keys(fields).join('-')}-${role}`;
    const { status, body } = await create({ username, ...fields });
    assert.equal([status, body.role, body.is_superuser], [201, role, role === 'admin']);
  });
}

test('refuse a name that is taken, however it is written', async () => {
  for (const username of ['ada', 'ADA']) {
    const { status, body } = await create({ username });
    assert.equal([status, body.error_code], [400, 'DUPLICATE_USERNAME']);
  }
});

test('list everybody', async () => {
  const { status, text } = await ask('GET', '/auth/users');
  assert.is(status, 200);
  const users: unknown = JSON.parse(text);
  assert.ok(Array.isArray(users));
  assert.equal(
    users.slice(0, 2).map(({ username }) => username),
    ['admin', 'ada'],
  );
});

test('change a user; the next request feels it', async () => {
  const { id } = await app.createUser('hopper');
  const login = await app.login('hopper');
  const mine = () => app.as(login, 'GET', '/auth/me');
  assert.equal((await mine()).body.templates, null);
  const change = { email: 'h@example.org', templates: ['demo'] };
  const changed = await ask('PATCH', `/auth/users/${id}`, change);
  assert.equal(
    [changed.status, changed.body.email, changed.body.templates],
    [200, 'h@example.org', ['demo']],
  );
  assert.equal((await mine()).body.templates, ['demo']);
  for (const templates of [[], null])
    assert.equal((await ask('PATCH', `/auth/users/${id}`, { templates })).body.templates, templates);
  assert.equal((await mine()).body.templates, null);
  const promoted = await ask('PATCH', `/auth/users/${id}`, { is_superuser: true });
  assert.equal([promoted.body.role, promoted.body.is_superuser], ['admin', true]);
  assert.is((await mine()).status, 401, 'a new role needs a new token');
});

test('void tokens by a new password, and lock out who is disabled', async () => {
  const { id } = await app.createUser('locked');
  const login = await app.login('locked');
  await ask('PATCH', `/auth/users/${id}`, { password: 'another horse' });
  assert.is((await app.as(login, 'GET', '/auth/me')).status, 401);
  const wrong = await app.ask('POST', '/auth/login', { body: { username: 'locked', password: PASSWORD } });
  assert.is(wrong.status, 401);
  const right = { username: 'locked', password: 'another horse' };
  assert.is((await app.ask('POST', '/auth/login', { body: right })).status, 200);
  const disabled = await ask('PATCH', `/auth/users/${id}`, { is_active: false });
  assert.is(disabled.body.is_active, false);
  assert.is((await app.ask('POST', '/auth/login', { body: right })).status, 401);
});

test('keep one admin', async () => {
  const app = await startWithAccounts();
  const users: unknown = JSON.parse((await app.as(app.admin, 'GET', '/auth/users')).text);
  const { id } = Array.isArray(users) ? users[0] : assert.unreachable();
  for (const [method, body] of [
    ['DELETE', undefined],
    ['PATCH', { role: 'user' }],
    ['PATCH', { is_superuser: false }],
    ['PATCH', { is_active: false }],
  ] as const) {
    const answer = await app.as(app.admin, method, `/auth/users/${id}`, body === undefined ? {} : { body });
    assert.equal([answer.status, answer.body.error_code], [400, 'LAST_ADMIN']);
  }
  assert.is((await app.as(app.admin, 'GET', '/auth/users')).status, 200);
  await app.close();
});

test('delete a user with tokens and keys', async () => {
  const { id } = await app.createUser('leaving');
  const login = await app.login('leaving');
  const { key } = await app.auth.accounts.createApiKey({
    name: 'k',
    permissions: ['tools:call'],
    ownerId: id,
  });
  assert.is((await app.as({ 'x-api-key': key }, 'GET', '/auth/me')).status, 200);
  const first = await ask('DELETE', `/auth/users/${id}`);
  assert.equal([first.status, first.text], [204, '']);
  assert.is((await app.as(login, 'GET', '/auth/me')).status, 401);
  assert.is((await app.as({ 'x-api-key': key }, 'GET', '/auth/me')).status, 401);
  const second = await ask('DELETE', `/auth/users/${id}`);
  assert.equal([second.status, second.body.error_code], [404, 'USER_NOT_FOUND']);
});

test('refuse, of many new passwords at once, those that the line cannot take, in words about passwords', async () => {
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
    for (const { body: refusal, headers } of refused) {
      assert.equal(
        [refusal.error_code, refusal.detail, headers.get('retry-after')],
        ['TOO_MANY_ATTEMPTS', 'Too many passwords at once; wait a moment.', '2'],
      );
    }
  }
  await app.close();
});

test.run();
