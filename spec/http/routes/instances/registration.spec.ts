import * as assert from 'uvu/assert';
import { duplicateServer } from '../../../../src/domain/errors/registry-errors.ts';
import type { TemplateDefinition } from '../../../../src/templates/definition.ts';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../../helpers/http/app.ts';
import { failingStore } from '../../../helpers/stores/failing-store.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the registration routes');
const app = appFor(test, () => startApp({ allowedOrigins: ['https://console.example'] }));

const register = async (body: unknown, query = '', headers: Record<string, string> = {}) =>
  app.ask('POST', `/gateway/register${query}`, { body, headers });

test('answer 201 at once with the record, whether the fields are nested or flat', async () => {
  const instance = { endpoint: 'http://127.0.0.1:1', weight: 3, metadata: { team: 'a' } };
  for (const [id, fields] of [
    ['one', { instance: { id: 'one', ...instance } }],
    ['flat', { id: 'flat', ...instance }],
  ] as const) {
    const { status, body } = await register({ template_name: 'demo', ...fields });
    assert.is(status, 201);
    assert.equal([body.instance_id, body.template_name, body.id, body.server_id], [id, 'demo', id, id]);
    assert.equal([body.endpoint, body.transport, body.weight], ['http://127.0.0.1:1/mcp', 'http', 3]);
    assert.equal(body.metadata, { team: 'a' });
    const message = `Instance "${id}" is registered.`;
    assert.equal([body.status, body.state, body.message], ['unhealthy', 'starting', message]);
  }
});

test('set the load balancer of the template', async () => {
  const load_balancer = { strategy: 'random', max_retries: 1, session: 'isolated' };
  const instance = { endpoint: 'http://127.0.0.1:1' };
  await register({ template_name: 'set', instance, load_balancer });
  const { policy } = app.gateway.template('set');
  assert.equal([policy.strategy, policy.maxRetries, policy.processSharing], ['random', 1, 'isolated']);
});

test('refuse an address in a denied network, however it is written', async () => {
  for (const host of ['169.254.169.254', '2852039166', '[::ffff:169.254.169.254]']) {
    const body = { template_name: 'metadata', endpoint: `http://${host}/mcp` };
    assert.is((await register(body)).outcome, '400 ENDPOINT_NOT_ALLOWED');
  }
  assert.not(app.gateway.templates().includes('metadata'));
});

test('start a command for a local caller, and wait until the instance is healthy', async () => {
  const instance = {
    id: 's',
    command: process.execPath,
    args: [stdioServerPath],
    env_vars: { TOKEN: 'secret' },
  };
  const { status, body, text } = await register({ template_name: 'command', instance }, '?wait=5');
  assert.equal([status, body.transport, body.status, body.state], [201, 'stdio', 'healthy', 'healthy']);
  assert.equal(body.env_vars, { TOKEN: '***' });
  assert.not.match(text, /secret/);
  const call = await app.ask('POST', '/mcp/command/tools/call', { body: { name: 'pid' } });
  assert.is(call.status, 200);
});

test('the answer to a registration for any node warns of absolute paths, without their values', async () => {
  const instance = {
    command: process.execPath,
    args: [stdioServerPath, '--root=/srv'],
    env_vars: { ROOT: '/x', NO: '//x' },
  };
  const lines = async (changes: object, path = '/gateway/register', wanted = 201) => {
    const { status, body } = await app.ask('POST', path, { body: changes });
    assert.is(status, wanted);
    return body.warnings as string[];
  };
  const at = (id: string, node?: string) => ({ template_name: 'roots', instance: { ...instance, id, node } });
  const [line = '', ...others] = await lines(at('any', 'any'));
  assert.match(line, /^any node may run it, and it names absolute paths \(argument 1, argument 2, ROOT\): /);
  assert.equal(others, []);
  assert.equal(await lines(at('here')), []);
  const server = await app.ask('GET', '/servers/any');
  assert.equal(server.body.warnings, []);
});

for (const [who, headersOf] of [
  ['a local browser', () => ({ origin: 'https://console.example' })],
  ['a page of the gateway', () => ({ origin: app.url })],
  ['an untrusted local proxy', () => ({ 'x-forwarded-for': '203.0.113.9' })],
] as const) {
  test(`run and try no command for ${who}, which may register an endpoint`, async () => {
    const headers = headersOf();
    for (const body of [
      { template_name: 'no', instance: { command: 'true' } },
      { template_name: 'no', command: 'true' },
      { template_name: 'no', command: 'true', endpoint: 'http://127.0.0.1:1' },
    ]) {
      assert.is((await register(body, '', headers)).outcome, '403 COMMAND_NOT_ALLOWED');
      const tried = await app.ask('POST', '/gateway/test', { body, headers });
      assert.is(tried.outcome, '403 COMMAND_NOT_ALLOWED');
    }
    assert.not(app.gateway.templates().includes('no'));
    const endpoint = { template_name: 'other', endpoint: 'http://127.0.0.1:1' };
    assert.is((await register(endpoint, '', headers)).status, 201);
  });
}

test('replace an instance with If-Match only as it was read', async () => {
  const body = { template_name: 'read', id: 'r', endpoint: 'http://127.0.0.1:1' };
  const { updated_at: read } = (await register(body)).body;
  const as = (tag: unknown) => register({ ...body, weight: 2 }, '', { 'If-Match': `"${tag}"` });
  assert.is((await as('1999-12-31T00:00:00.000Z')).outcome, '412 PRECONDITION_FAILED');
  assert.is(app.gateway.instance('read', 'r').definition.weight, 1);
  assert.is((await as(read)).status, 200);
  await app.ask('DELETE', '/gateway/deregister/read/r');
  assert.is((await as('*')).outcome, '412 PRECONDITION_FAILED');
  assert.not(app.gateway.servers('read').length);
});

test('deregister an instance with 204, once', async () => {
  await register({ template_name: 'gone', id: 'g', endpoint: 'http://127.0.0.1:1' });
  const first = await app.ask('DELETE', '/gateway/deregister/gone/g');
  assert.equal([first.status, first.text], [204, '']);
  assert.is((await app.ask('DELETE', '/gateway/deregister/gone/g')).outcome, '404 SERVER_NOT_FOUND');
  assert.is((await app.ask('DELETE', '/gateway/deregister/unknown/g')).outcome, '404 TEMPLATE_NOT_FOUND');
});

// --- with authentication ----------------------------------------------------------------------------------------

test('replace the same id in place with 200: a command by an endpoint, without its variables and arguments', async () => {
  const app = await startWithAccounts();
  const writer = await app.key(['gateway:write', 'gateway:read']);
  const instance = {
    ...{ id: 's', command: process.execPath, args: [stdioServerPath], working_dir: import.meta.dirname },
    env_vars: { TOKEN: 'planted-secret' },
  };
  const first = await app.as(app.admin, 'POST', '/gateway/register', {
    body: { template_name: 'demo', instance },
  });
  assert.equal([first.status, first.headers.get('location')], [201, '/servers/s']);
  const body = { template_name: 'demo', id: 's', endpoint: 'http://127.0.0.1:1/mcp' };
  const second = await app.as(writer, 'POST', '/gateway/register', { body });
  assert.equal([second.status, second.body.server_id], [200, 's']);
  assert.equal([second.body.created_at, app.gateway.servers().length], [first.body.created_at, 1]);
  const { definition } = app.gateway.instance('demo', 's');
  assert.equal(
    [definition.endpoint, definition.command, definition.args, definition.workingDir, definition.env],
    ['http://127.0.0.1:1/mcp', undefined, [], undefined, {}],
  );
  assert.equal(definition.headers, {});
  await app.close();
});

const weather: TemplateDefinition = {
  ...{ id: 'weather', name: 'Weather', description: 'A service.', version: '1.0.0' },
  environment: { UNITS: 'metric' },
};
const served = { command: 'serve', args: ['--root', '/srv/two words'] };
const npx = { command: 'npx -y weather@1.0.0' };

/** By template: the commands that a caller without the scope `admin` may not register. */
const NOT_ALLOWED = {
  weather: [
    { command: 'sh -c x' },
    { ...npx, working_dir: '/srv' },
    { ...npx, env_vars: { OTHER: 'x' } },
    { ...npx, env_vars: { NODE_OPTIONS: '--inspect' } },
    { command: 'sh', endpoint: 'http://127.0.0.1:1' },
  ],
  // Nothing declares variables of this template.
  unknown: [{ ...npx, env_vars: { UNITS: 'x' } }],
};

test('restrict the commands of a caller without the scope admin to the allowed list, and register the checked words', async () => {
  const allowedCommands = [
    ['serve', '--root', '*path'],
    ['npx', '-y', 'weather@1.0.0'],
  ];
  const app = await startWithAccounts({ allowedCommands, gateway: { definitions: [weather] } });
  const writer = await app.key(['gateway:write', 'gateway:read']);
  const register = (template_name: string, instance: object, who = writer) =>
    app.as(who, 'POST', '/gateway/register', { body: { template_name, instance: { id: 'x', ...instance } } });
  const forced = { ...served, force: true };
  // With a command of its choice an admin of some templates would read the secrets of the gateway.
  for (const who of [writer, await app.key(['admin'], Object.keys(NOT_ALLOWED))]) {
    for (const [template, instances] of Object.entries(NOT_ALLOWED))
      for (const instance of instances) {
        const { outcome } = await register(template, instance, who);
        assert.is(outcome, '403 COMMAND_NOT_ALLOWED', JSON.stringify(instance));
      }
    assert.is((await register('weather', forced, who)).body.error_code, 'INSUFFICIENT_PERMISSIONS');
  }
  assert.equal(app.gateway.servers(), []);
  assert.is((await register('weather', { ...forced, working_dir: '/srv' }, app.admin)).status, 201);
  const endpoint = { endpoint: 'http://127.0.0.1:1' };
  assert.is((await register('unknown', endpoint)).status, 201, 'only commands are checked');
  for (const instance of [served, { command: "serve --root '/srv/two words'", env_vars: { UNITS: 'x' } }]) {
    assert.is((await register('weather', instance)).status, 200);
    const { definition } = app.gateway.instance('weather', 'x');
    assert.equal([definition.command, definition.args], [served.command, served.args]);
  }
  const changes = [{ command: 'true' }, { args: [] }, { env_vars: {} }, { metadata: { command: 'true' } }];
  for (const body of changes) await app.as(writer, 'PATCH', '/gateway/instances/weather/x', { body });
  await app.as(writer, 'POST', '/gateway/instances/weather/x/restart');
  const { definition } = app.gateway.instance('weather', 'x');
  assert.equal([definition.command, definition.args], [served.command, served.args]);
  const flat = { template_name: 'weather', command: 'true' };
  assert.is((await app.as(writer, 'POST', '/gateway/register', { body: flat })).status, 403);
  await app.close();
});

test('answer 422 for numbers that cannot be kept exactly, and for bodies with too many values', async () => {
  const app = await startApp();
  const keys = Object.fromEntries(Array.from({ length: 49_000 }, (_, index) => [`k${index}`, index]));
  const asked: readonly [method: string, path: string, body: (metadata: string) => string, field: string][] =
    [
      [
        'POST',
        '/gateway/register',
        (json) => `{"template_name":"t","endpoint":"http://127.0.0.1:1","metadata":${json}}`,
        'metadata',
      ],
      [
        'POST',
        '/servers',
        (json) =>
          `{"template_name":"t","config":{"endpoint":"http://127.0.0.1:1"},"instance_metadata":${json}}`,
        'instance_metadata',
      ],
      ['PATCH', '/gateway/instances/t/x', (json) => `{"metadata":${json}}`, 'metadata'],
    ];
  await app.gateway.register('t', { id: 'x', endpoint: 'http://127.0.0.1:1' });
  for (const [method, path, body, field] of asked) {
    const send = async (json: string) => {
      const answer = await app.ask(method, path, { body: body(json) });
      const [issue] = [answer.body.detail].flat();
      return [answer.status, answer.body.error_code, Object(issue).loc.join('.')];
    };
    for (const number of ['1e400', '9007199254740993'])
      assert.equal(await send(`{"n":${number}}`), [422, 'VALIDATION_ERROR', `body.${field}.n`]);
    assert.equal(await send(JSON.stringify({ list: Array(1_000).fill(1) })), [
      ...[422, 'VALIDATION_ERROR', `body.${field}`],
    ]);
    assert.equal(await send(JSON.stringify(keys)), [422, 'VALIDATION_ERROR', 'body']);
  }
  await app.close();
});

test('answer 400 when other nodes take the server id repeatedly', async () => {
  const store = failingStore();
  const app = await startApp({ gateway: { store } });
  store.failure = () => duplicateServer('x');
  store.failing.add('instances.save');
  const endpoint = 'http://127.0.0.1:1';
  for (const [path, body] of [
    ['/gateway/register', { template_name: 'demo', id: 'x', endpoint }],
    ['/servers', { template_name: 'demo', config: { endpoint } }],
  ] as const) {
    assert.is((await app.ask('POST', path, { body })).outcome, '400 DUPLICATE_SERVER');
  }
  await app.close();
});

test.run();
