import * as assert from 'uvu/assert';
import type { TemplateDefinition } from '../../../../src/templates/definition.ts';
import { startHttpServer } from '../../../fixtures/http-server.ts';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the server routes');
const fixture: TemplateDefinition = {
  ...{ id: 'fixture', name: 'Fixture', description: 'A server of the specs.', version: '1.0.0' },
  ...{ command: process.execPath, args: [stdioServerPath], transport: 'stdio' },
  environment: { MODE: 'plain' },
  config_schema: { properties: { token: { type: 'string', env_mapping: 'TOKEN' } } },
};
const app = appFor(test, () =>
  startWithAccounts({
    gateway: { definitions: [fixture] },
    allowedCommands: [[process.execPath, stdioServerPath]],
  }),
);
const endpoint = 'http://127.0.0.1:1';
const backend = startHttpServer();
test.after(async () => {
  await (await backend).close();
});

const ask = (method: string, path: string, body?: unknown) => app.as(app.admin, method, path, { body });
const listOf = (text: string): Record<string, unknown>[] => JSON.parse(text);

test('register a server that can be called by its template', async () => {
  const { status, body, headers } = await ask('POST', '/servers', {
    template_name: 'both',
    instance_metadata: { team: 'a', weight: 3 },
    config: { endpoint: (await backend).url, headers: { 'X-Key': 'planted-secret' } },
  });
  assert.is(status, 201);
  assert.match(String(body.server_id), /^both-[0-9a-f]{8}$/);
  assert.is(headers.get('location'), `/servers/${body.server_id}`);
  assert.equal([body.weight, body.metadata, body.headers], [3, { team: 'a', weight: 3 }, { 'X-Key': '***' }]);
  const registry = await ask('GET', '/gateway/registry');
  assert.match(registry.text, new RegExp(`"server_id":"${body.server_id}"`));
  assert.not.match(registry.text, /planted-secret/);
  assert.is((await ask('GET', String(headers.get('location')))).body.server_id, body.server_id);
  await becomes(async () => (await ask('GET', `/servers/${body.server_id}`)).body.healthy, true);
  const call = { body: { name: 'name' } };
  assert.is((await app.as(app.user, 'POST', '/mcp/both/tools/call', call)).status, 200);
});

test('show and deregister an instance that was registered at /gateway/register', async () => {
  await ask('POST', '/gateway/register', { template_name: 'a', id: 'from-a', endpoint });
  assert.is((await ask('GET', '/servers/from-a')).body.template_name, 'a');
  const first = await ask('DELETE', '/servers/from-a');
  assert.equal([first.status, first.text], [204, '']);
  assert.is((await ask('GET', '/servers/from-a')).status, 404);
  assert.is((await ask('DELETE', '/servers/from-a')).outcome, '404 SERVER_NOT_FOUND');
  assert.equal((await ask('DELETE', '/gateway/deregister/a/from-a')).body.error_code, 'SERVER_NOT_FOUND');
});

test('address a server by its server id, which may differ from its instance id', async () => {
  for (const template_name of ['first', 'second'])
    await ask('POST', '/gateway/register', { template_name, id: 'same', endpoint });
  assert.is((await ask('GET', '/servers/same')).body.template_name, 'first');
  assert.is((await ask('GET', '/servers/second.same')).body.template_name, 'second');
  await ask('DELETE', '/servers/same');
  assert.is((await ask('GET', '/servers/second.same')).status, 200);
  const [template_name, id] = ['t'.repeat(128), 'i'.repeat(128)];
  for (const template of ['first', template_name])
    await ask('POST', '/gateway/register', { template_name: template, id, endpoint });
  const path = `/servers/${template_name}.${id}`;
  assert.is((await ask('GET', path)).body.template_name, template_name);
  assert.is((await ask('DELETE', path)).status, 204);
  assert.is((await ask('GET', path)).body.detail, `No instance "${template_name}" is registered.`);
});

test('reveal nothing of other templates to a key for some templates', async () => {
  const limited = await app.key(['gateway:write', 'gateway:read'], ['mine']);
  await ask('POST', '/gateway/register', { template_name: 'theirs', id: 'known', endpoint });
  await ask('POST', '/gateway/register', { template_name: 'theirs', id: 'mine.known', endpoint });
  for (const id of ['known', 'unknown']) {
    const body = { template_name: 'mine', id, endpoint };
    const registered = await app.as(limited, 'POST', '/gateway/register', { body });
    assert.equal([registered.status, registered.body.server_id], [201, `mine~${id}`]);
    const absent = await app.as(limited, 'GET', `/servers/${id}`);
    assert.equal([absent.status, absent.body.detail], [404, `No instance "${id}" is registered.`]);
    assert.is((await app.as(limited, 'DELETE', `/servers/mine~${id}`)).status, 204);
  }
  const { body } = await app.as(limited, 'POST', '/servers', {
    body: { template_name: 'mine', config: { endpoint } },
  });
  assert.match(String(body.server_id), /^mine~mine-[0-9a-f]{8}$/);
  const { text, headers } = await app.as(limited, 'GET', '/servers?include_health=true');
  assert.equal([listOf(text).length, headers.get('x-total-count')], [1, '1']);
  assert.not.match(text, /theirs|known/);
});

test('forbid caching of their answers, like all routes that need credentials', async () => {
  const headersOf = async (who: Record<string, string>, path: string) => {
    const { headers } = await app.as(who, 'GET', path);
    return [headers.get('cache-control'), headers.get('vary')];
  };
  const kept = ['no-store', 'Authorization, Cookie, X-API-Key'];
  assert.equal(await headersOf(app.admin, '/servers'), kept);
  assert.equal(await headersOf(app.admin, '/servers/none'), kept);
  assert.equal(await headersOf({}, '/servers'), kept);
  assert.equal(await headersOf(app.user, '/auth/users'), kept);
  assert.equal(await headersOf({}, '/health'), [null, null]);
});

test('list servers by id, with their health on request', async () => {
  const { status, text, headers } = await ask('GET', '/servers');
  assert.is(status, 200);
  const servers = listOf(text);
  assert.is(headers.get('x-total-count'), String(servers.length));
  assert.is(headers.get('x-next-cursor'), null);
  const ids = servers.map(({ server_id }) => String(server_id));
  assert.equal(ids, [...ids].sort());
  assert.ok(servers.every((server) => !('health' in server)));
  for (const yes of ['true', '1', 'True']) {
    const [first] = listOf((await ask('GET', `/servers?include_health=${yes}`)).text);
    assert.equal(Object.keys(Object(first?.health)).sort(), [
      ...['consecutive_failures', 'ejection', 'healthy', 'in_flight', 'last_check', 'latency_ms'],
      ...['next_attempt_at', 'reason', 'restarts', 'score', 'state', 'status', 'transport', 'weight'],
    ]);
  }
});

test('list servers in pages, each server once, even if one is replaced meanwhile', async () => {
  const app = await startWithAccounts();
  const names = ['c', 'a', 'e', 'b', 'd'];
  for (const id of names) await app.gateway.register('demo', { id, endpoint });
  const seen: unknown[] = [];
  let cursor: string | null = '';
  for (let pages = 0; cursor !== null && pages < 9; pages += 1) {
    const query: string = cursor === '' ? '?limit=2' : `?limit=2&cursor=${cursor}`;
    const { text, headers } = await app.as(app.user, 'GET', `/servers${query}`);
    assert.is(headers.get('x-total-count'), '5');
    seen.push(...listOf(text).map(({ server_id }) => server_id));
    cursor = headers.get('x-next-cursor');
    if (seen.length !== 2) continue;
    await app.gateway.deregister('demo', 'b');
    await app.gateway.register('demo', { id: 'b', endpoint });
  }
  assert.equal(seen, ['a', 'b', 'c', 'd', 'e']);
  await app.close();
});

test('start the command of the template with its settings, and refuse another command or variable', async () => {
  const writer = await app.key(['gateway:write']);
  const body = { template_name: 'fixture', config: { token: 'planted-secret' } };
  const made = await app.as(writer, 'POST', '/servers', { body });
  assert.equal([made.status, made.body.transport, made.body.command], [201, 'stdio', process.execPath]);
  assert.equal(made.body.env_vars, { MODE: '***', TOKEN: '***' });
  assert.not.match(made.text, /planted-secret/);
  const seen = await app.as(app.user, 'GET', `/servers/${made.body.server_id}`);
  assert.equal([seen.body.command, seen.body.args, seen.body.reason], [null, [], null]);
  assert.not.match(seen.text, /stdio-server/);
  for (const config of [{ command: 'sh' }, { env_vars: { OTHER: 'x' } }]) {
    const refused = await app.as(writer, 'POST', '/servers', { body: { ...body, config } });
    assert.is(refused.outcome, '403 COMMAND_NOT_ALLOWED');
  }
  const long = { ...body, config: { token: 'x'.repeat(40_000) } };
  const { detail } = (await app.as(writer, 'POST', '/servers', { body: long })).body;
  assert.equal(Object(detail)[0].loc, ['body', 'config', 'env_vars', 'TOKEN']);
  await ask('DELETE', `/servers/${made.body.server_id}`);
});

test.run();
