// Roles of the settings: they stand wherever a role is named, and limit the accounts that have them.

import * as assert from 'uvu/assert';
import type { DefinedRoles } from '../../../src/domain/accounts/account.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('roles');
const roles: DefinedRoles = {
  support: { scopes: ['tools:call'], tools: ['demo/echo'], views: ['desk'] },
  reader: { scopes: ['gateway:read'] },
  filer: { scopes: ['tools:call'], templates: ['demo'] },
  // Names of inherited properties are names like others.
  ...Object.fromEntries([['constructor', { scopes: ['gateway:read'] as const }]]),
};
const app = appFor(test, () => startWithAccounts({ roles }));
test.before(() => app.serve('demo', 'one'));

const create = (username: string, role: string) =>
  app.as(app.admin, 'POST', '/auth/users', {
    body: { username, email: `${username}@localhost`, password: 'correct horse', role },
  });

test('are given to users, and limit them', async () => {
  const made = await create('sue', 'support');
  assert.equal([made.status, made.body.role, made.body.is_superuser], [201, 'support', false]);
  const sue = await app.login('sue');
  const { body: me } = await app.as(sue, 'GET', '/auth/me');
  assert.equal(
    [me.scopes, me.templates, me.views, me.tools],
    [['tools:call'], null, ['desk'], ['demo/echo']],
  );
  const call = (name: string) => app.as(sue, 'POST', '/mcp/demo/tools/call', { body: { name } });
  assert.is((await call('echo')).status, 200);
  assert.is((await call('name')).outcome, '404 TOOL_NOT_FOUND');
  assert.is((await app.as(sue, 'GET', '/gateway/registry')).outcome, '403 INSUFFICIENT_PERMISSIONS');
});

test('are changed, with effect on the next login', async () => {
  const { body: user } = await create('rita', 'reader');
  const changed = await app.as(app.admin, 'PATCH', `/auth/users/${user.id}`, { body: { role: 'support' } });
  assert.equal([changed.status, changed.body.role], [200, 'support']);
  const { body: me } = await app.as(await app.login('rita'), 'GET', '/auth/me');
  assert.equal(me.scopes, ['tools:call']);
});

test('limit further with the lists of the user', async () => {
  const { body: user } = await create('tom', 'support');
  await app.as(app.admin, 'PATCH', `/auth/users/${user.id}`, {
    body: { tools: ['demo/*'], views: ['other'] },
  });
  const { body: me } = await app.as(await app.login('tom'), 'GET', '/auth/me');
  assert.equal([me.views, me.tools, me.tools_within], [[], ['demo/*'], [['demo/echo']]]);
});

test('that are not defined are refused, and one that is gone gives no rights', async () => {
  const refused = await create('una', 'nurse');
  assert.equal([refused.outcome, refused.issue], ['422 VALIDATION_ERROR', 'body.role enum']);
  await app.createUser('gone', 'nurse');
  const { status, body } = await app.as(await app.login('gone'), 'GET', '/auth/me');
  assert.equal([status, body.error_code], [403, 'INSUFFICIENT_PERMISSIONS']);
});

test('give a key their scopes and lists, which the body may limit and not replace', async () => {
  const make = (body: object) =>
    app.as(app.admin, 'POST', '/auth/api-keys', { body: { name: 'k', ...body } });
  const made = await make({ role: 'support', templates: ['demo'] });
  assert.equal(
    [made.status, made.body.permissions, made.body.templates, made.body.views, made.body.tools],
    [201, ['tools:call'], ['demo'], ['desk'], ['demo/echo']],
  );
  const headers = { 'x-api-key': String(made.body.key) };
  const call = (name: string) => app.ask('POST', '/mcp/demo/tools/call', { headers, body: { name } });
  assert.is((await call('echo')).status, 200);
  assert.is((await call('name')).outcome, '404 TOOL_NOT_FOUND');
  const issues = { 'body.tools': { tools: null }, 'body.views': { views: ['other'] } };
  for (const [field, more] of Object.entries(issues))
    assert.is((await make({ role: 'support', ...more })).issue, `${field} value_error`);
  const beyond = await make({ role: 'reader', permissions: ['gateway:read', 'tools:call'] });
  assert.is(beyond.issue, 'body.permissions value_error');
  assert.equal((await make({ role: 'user', permissions: ['tools:call'] })).body.permissions, ['tools:call']);
  assert.is((await make({ role: 'nurse' })).issue, 'body.role enum');
  assert.is((await make({})).issue, 'body.permissions missing');
});

test('exclude views from a key by a list of templates, as they do for a user', async () => {
  const body = { name: 'k', role: 'filer' };
  const made = await app.as(app.admin, 'POST', '/auth/api-keys', { body });
  assert.equal([made.body.templates, made.body.views], [['demo'], []]);
  const wider = await app.as(app.admin, 'POST', '/auth/api-keys', { body: { ...body, views: ['desk'] } });
  assert.is(wider.issue, 'body.views value_error');
});

test('may have the name of an inherited property', async () => {
  assert.is((await create('vera', 'constructor')).status, 201);
  const { body: me } = await app.as(await app.login('vera'), 'GET', '/auth/me');
  assert.equal(me.scopes, ['gateway:read']);
});

test.run();
