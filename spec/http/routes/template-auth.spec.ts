// `auth` of a template: what its instances get that are registered without it.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { parseRegistryDocument } from '../../../src/registry/files/registry-file.ts';
import { readTemplate, TemplateError } from '../../../src/templates/definition.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('auth of templates');
const endpoint = 'http://127.0.0.1:1/mcp';
const connections = { address: { issuer: 'http://127.0.0.1:8080', isPublic: false } };
const defined = { id: 'defined', name: 'Defined', description: 'It wants accounts.', version: '1.0.0' };
const definition = { ...defined, auth: { mode: 'oauth', who: 'user' } } as const;
const app = appFor(
  test,
  () =>
    startApp({
      gateway: { store: new MemoryStore(), backendAccounts: connections, definitions: [definition] },
    }),
  'each',
);

const authOf = (template: string, id: string) => app.gateway.instance(template, id).definition.auth;
const register = (template_name: string, id: string, fields: object = {}) =>
  app.ask('POST', '/gateway/register', { body: { template_name, id, endpoint, ...fields } });
const change = (template: string, body: object) =>
  app.ask('PATCH', `/gateway/templates/${template}`, { body });

test('an instance without auth inherits that of its template', async () => {
  assert.is((await register('mail', 'before')).status, 201);
  const auth = { mode: 'oauth', who: 'shared', scopes: ['read'] };
  const { status, body } = await change('mail', { auth });
  assert.equal([status, body.auth], [200, auth]);
  assert.equal((await app.ask('GET', '/gateway/templates/mail')).body.auth, auth);
  assert.is((await register('mail', 'after')).status, 201);
  assert.equal(authOf('mail', 'after'), { who: 'shared', scopes: ['read'] });
  assert.is(authOf('mail', 'before'), undefined);
});

test('what an instance says goes first, field by field', async () => {
  await register('mail', 'before');
  await change('mail', { load_balancer: { timeout: 5 }, auth: { mode: 'oauth', who: 'user' } });
  await register('mail', 'client', { auth: { mode: 'oauth', client_id: 'gateway', client_secret: 's' } });
  assert.equal(authOf('mail', 'client'), { who: 'user', clientId: 'gateway', clientSecret: 's' });
  await register('mail', 'shared', { auth: { mode: 'oauth', who: 'shared' } });
  assert.equal(authOf('mail', 'shared'), { who: 'shared' });
  await register('mail', 'none', { auth: { mode: 'none' } });
  await register('mail', 'headers', { headers: { authorization: 'Bearer abc' } });
  await register('mail', 'program', { endpoint: undefined, command: 'true' });
  for (const id of ['none', 'headers', 'program']) assert.is(authOf('mail', id), undefined, id);
  assert.is(app.gateway.template('mail').policy.callTimeoutMs, 5_000);
});

test('null restores that of the definition file, else there is none', async () => {
  await change('defined', { auth: { mode: 'none' } });
  await register('defined', 'open');
  assert.is(authOf('defined', 'open'), undefined);
  const { body } = await change('defined', { auth: null });
  assert.equal(body.auth, definition.auth);
  await register('defined', 'own');
  assert.equal(authOf('defined', 'own'), { who: 'user' });
});

test('a definition that is stored through the API has it, too, and no credentials', async () => {
  const put = (auth: object) =>
    app.ask('PUT', '/gateway/templates/stored/definition', { body: { ...defined, id: 'stored', auth } });
  assert.is((await put({ mode: 'oauth', who: 'shared' })).status, 201);
  await register('stored', 'one');
  assert.equal(authOf('stored', 'one'), { who: 'shared' });
  const { status, body } = await put({ mode: 'oauth', who: 'shared', client_secret: 'x' });
  assert.is(status, 422);
  assert.match(JSON.stringify(body), /client_secret.*A template has no credentials/);
});

test('credentials, and modes without what they need, are refused', async () => {
  await register('mail', 'one');
  const oauth = { mode: 'oauth', who: 'user' };
  const cases: readonly [object, string, RegExp][] = [
    [{ ...oauth, client_id: 'x' }, 'client_id', /A template has no credentials/],
    [{ ...oauth, client_secret: 'x' }, 'client_secret', /A template has no credentials/],
    [{ mode: 'oauth' }, 'who', /own accounts/],
    [{ mode: 'none', who: 'user' }, 'auth', /Only the mode "oauth"/],
    [{ ...oauth, more: 1 }, 'more', /not permitted/],
  ];
  for (const [auth, field, reason] of cases) {
    const { status, body } = await change('mail', { auth });
    const [{ loc, msg }] = Object(body.detail);
    assert.equal([status, loc.at(-1)], [422, field]);
    assert.match(msg, reason);
    const text = JSON.stringify({ ...defined, auth });
    assert.throws(
      () => readTemplate(text),
      (error: unknown) => error instanceof TemplateError,
    );
  }
  const secret = JSON.stringify({ ...defined, auth: { ...oauth, client_secret: 'x' } });
  assert.throws(() => readTemplate(secret), 'auth.client_secret: A template has no credentials');
  assert.equal(readTemplate(JSON.stringify({ ...defined, auth: oauth })).auth, oauth);
});

test('a registry file sets it for its entries; a change of it changes them', async () => {
  const read = (auth: object) =>
    parseRegistryDocument(
      JSON.stringify({
        templates: {
          mail: {
            auth,
            instances: [
              { id: 'a', endpoint },
              { id: 'b', command: 'true' },
            ],
          },
        },
      }),
      'registry.json',
    );
  const contents = await read({ mode: 'oauth', who: 'user' });
  assert.equal(contents.problems, []);
  assert.equal((await app.gateway.importFile(contents)).added.length, 2);
  assert.equal([authOf('mail', 'a'), authOf('mail', 'b')], [{ who: 'user' }, undefined]);
  const { changed, unchanged } = await app.gateway.importFile(await read({ mode: 'oauth', who: 'shared' }));
  assert.equal([changed.map(({ id }) => id), unchanged.map(({ id }) => id)], [['a'], ['b']]);
  assert.equal(authOf('mail', 'a'), { who: 'shared' });
  const wrong = await read({ mode: 'oauth', who: 'user', client_secret: 'x' });
  assert.equal([wrong.entries, wrong.isPartial], [[], true]);
  assert.match(
    wrong.problems[0] ?? '',
    /^templates\.mail\.auth\.client_secret: A template has no credentials/,
  );
});

test.run();
