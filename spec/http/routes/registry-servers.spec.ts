// The gateway as a registry of MCP servers: the form of the official one, rights, and the setting that opens it.

import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the gateway as a registry');
const long = { id: 'long', name: 'Long', description: `${'x'.repeat(99)}😀 and more`, version: '2.1.0' };
const options = { publicUrl: 'https://gateway.example.com' };
const app = appFor(test, () => startWithAccounts({ ...options, gateway: { definitions: [long] } }));
const endpoint = 'http://127.0.0.1:1';
const NAME = 'com.example.gateway';
test.before(async () => {
  for (const template of ['alpha', 'long', 'zeta']) await app.gateway.register(template, { endpoint });
});
const namesOf = (body: object) =>
  Object(body).servers.map(({ server }: { server: { name: string } }) => server.name);

test('lists the templates that have instances in the form of the official registry, by pages', async () => {
  const key = await app.key(['gateway:read']);
  const { body } = await app.as(key, 'GET', '/v0.1/servers?limit=2&version=latest');
  assert.equal(namesOf(body), [`${NAME}/alpha`, `${NAME}/long`]);
  const { count, nextCursor = '' } = Object(body.metadata);
  assert.is(count, 2);
  const [, { server, _meta: meta }] = Object(body).servers;
  assert.equal(server, {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    ...{ name: `${NAME}/long`, title: 'Long', description: 'x'.repeat(99), version: '2.1.0' },
    remotes: [{ type: 'streamable-http', url: 'https://gateway.example.com/mcp/long' }],
  });
  assert.equal(Object.keys(meta), ['io.modelcontextprotocol.registry/official']);
  assert.is(Object.values(Object(meta)).map((each) => Object(each).status)[0], 'active');
  const next = await app.as(key, 'GET', `/v0.1/servers?cursor=${encodeURIComponent(nextCursor)}`);
  assert.equal([namesOf(next.body), next.body.metadata], [[`${NAME}/zeta`], { count: 1 }]);
  assert.equal(namesOf((await app.as(key, 'GET', '/v0.1/servers?search=ALPH')).body), [`${NAME}/alpha`]);
  assert.equal(namesOf((await app.as(key, 'GET', '/v0.1/servers?search=none')).body), []);
  const path = `/v0.1/servers/${encodeURIComponent(`${NAME}/long`)}/versions`;
  for (const version of ['latest', '2.1.0'])
    assert.equal((await app.as(key, 'GET', `${path}/${version}`)).body, { server, _meta: meta });
  const unknown = await app.as(key, 'GET', `${path}/9.9.9`);
  assert.is(unknown.outcome, '404 NOT_FOUND');
  assert.is(unknown.body.detail, `There is no server "${NAME}/long" in the version "9.9.9".`);
  assert.is((await app.as(key, 'GET', '/v0.1/servers?limit=101')).outcome, '422 VALIDATION_ERROR');
});

test('updated_since is a time, and lists what was changed since then', async () => {
  const since = (text: string) =>
    app.as(app.admin, 'GET', `/v0.1/servers?updated_since=${encodeURIComponent(text)}`);
  assert.is(namesOf((await since('2020-01-01T00:00:00Z')).body).length, 3);
  assert.equal(namesOf((await since('2999-01-01T00:00:00+02:00')).body), []);
  const { outcome, issue } = await since('yesterday');
  assert.equal([outcome, issue], ['422 VALIDATION_ERROR', 'query.updated_since datetime_parsing']);
});

test('shows a caller the templates that the caller may use, and others nothing', async () => {
  const key = await app.key(['tools:call'], ['zeta']);
  assert.equal(namesOf((await app.as(key, 'GET', '/v0.1/servers')).body), [`${NAME}/zeta`]);
  const path = `/v0.1/servers/${encodeURIComponent(`${NAME}/alpha`)}/versions/latest`;
  assert.is((await app.as(key, 'GET', path)).outcome, '404 NOT_FOUND');
  assert.is((await app.ask('GET', '/v0.1/servers')).outcome, '401 AUTHENTICATION_REQUIRED');
});

test('registry.public: names and addresses for everyone, and for pages of every origin', async () => {
  const open = await startWithAccounts({
    ...{ ...options, registry: { isPublic: true } },
    gateway: { definitions: [long] },
  });
  await open.gateway.register('long', { endpoint });
  const plain = await open.ask('GET', '/v0.1/servers');
  assert.equal([plain.status, plain.headers.get('access-control-allow-origin')], [200, '*']);
  const [{ server }] = Object(plain.body).servers;
  assert.equal(
    [server.name, server.title, server.description, server.version],
    [`${NAME}/long`, undefined, 'The MCP server long of this gateway.', '1.0.0'],
  );
  const page = await open.ask('GET', '/v0.1/servers', { headers: { Origin: 'https://any.example' } });
  assert.equal([page.status, page.headers.get('access-control-allow-origin')], [200, '*']);
  assert.is((await open.ask('POST', '/v0.1/servers')).status, 405);
  assert.is((await open.ask('GET', '/gateway/templates')).status, 401);
  await open.close();
});

test('without a public address, names and addresses are those of the request', async () => {
  const local = await startApp();
  await local.gateway.register('alpha', { endpoint });
  const [{ server }] = Object((await local.ask('GET', '/v0.1/servers')).body).servers;
  assert.equal(
    [server.name, server.remotes],
    ['1.0.0.127/alpha', [{ type: 'streamable-http', url: `${local.url}/mcp/alpha` }]],
  );
  await local.close();
});

test('lists views with the templates, for callers that may use them', async () => {
  const body = { title: 'Support', version: '3', from: [{ template: 'alpha' }] };
  assert.is((await app.as(app.admin, 'PUT', '/gateway/views/desk', { body })).status, 201);
  const named = (await app.as(app.admin, 'GET', '/v0.1/servers')).body;
  assert.equal(namesOf(named), [`${NAME}/alpha`, `${NAME}/desk`, `${NAME}/long`, `${NAME}/zeta`]);
  const { server } = Object(named).servers[1];
  assert.equal(
    [server.title, server.version, server.remotes[0].url],
    [...['Support', '3', 'https://gateway.example.com/mcp/desk']],
  );
  const limited = await app.key(['gateway:read'], ['alpha']);
  assert.equal(namesOf((await app.as(limited, 'GET', '/v0.1/servers')).body), [`${NAME}/alpha`]);
  assert.is((await app.as(app.admin, 'DELETE', '/gateway/views/desk')).status, 204);
});

test.run();
