// What callers read when a program repeats its variables in an error, at each door: no secret, but paths, modes and levels.

import * as assert from 'uvu/assert';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { TemplateDefinition } from '../../../src/templates/definition.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('secrets of programs', { timeoutMs: 30_000 });

/** Refuses each call with all of its own variables. */
const PROGRAM = `
  const { OWN_REGION, OWN_LINES } = process.env;
  if (OWN_REGION) console.error('in ' + OWN_REGION + ' with ' + OWN_LINES + 'x'.repeat(2045) + OWN_REGION);
  const say = (id, answer) => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OWN_')));
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    if (method === 'initialize')
      return say(id, { result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
    if (method === 'ping') return say(id, { result: {} });
    if (method === 'tools/list') return say(id, { result: { tools: [{ name: 'fail', inputSchema: { type: 'object' } }] } });
    if (method !== 'tools/call') return say(id, { error: { code: -32601, message: 'no' } });
    say(id, { error: { code: -32050, message: 'failed with ' + own.OWN_API_KEY + ' at ' + own.OWN_LOG_LEVEL, data: own } });
  });`;

const HIDDEN = {
  OWN_API_KEY: 'sk-4f9a"b',
  OWN_GITHUB_TOKEN: 'ghp_0123456789',
  OWN_DB_PASSWORD: 'correct horse',
  OWN_PIN: '4711',
};
const SHOWN = {
  OWN_LOG_LEVEL: 'debug',
  OWN_KEY_FILE: '/home/me/key.json',
  OWN_ROOT: '/srv/data',
  OWN_MAX_TOKENS: '4096',
  OWN_AUTHOR: 'Ada',
  OWN_AUTH_ENABLED: 'true',
};
const URL_WITH_PASSWORD = { OWN_DATABASE: 'postgres://me:pa%24sword@db.example/main' };

let app: AppFixture;
test.before.each(async () => {
  app = await startApp();
  const env = { ...HIDDEN, ...SHOWN, ...URL_WITH_PASSWORD };
  const program = { command: process.execPath, args: ['-e', PROGRAM], env_vars: env };
  await app.gateway.register('t', { id: 'a', ...program }, { waitMs: 20_000 });
});
test.after.each(async () => {
  await app.gateway.close({ graceMs: 0 });
  await app.close();
});

/** The errors of the tool `fail` at each door. */
async function errorsOf({ gateway, ask }: AppFixture, template: string, serverId: string) {
  const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: {} } });
  const modern = (name: string) => modernRequest('tools/call', call(name).params);
  const everywhere = `${template}__fail`;
  const posts = [
    { template, message: call('fail'), headers: await openSession(gateway, template) },
    { template: undefined, message: call(everywhere), headers: await openSession(gateway, undefined) },
    { template, ...modern('fail') },
    { template: undefined, ...modern(everywhere) },
  ];
  const errors: unknown[] = [];
  for (const post of posts) errors.push((await postTo(gateway, post)).answer.error);
  const rest = await ask('POST', `/mcp/${template}/tools/call`, { body: call('fail').params });
  const flat = { tool_name: 'fail', server_id: serverId, arguments: {} };
  const second = await ask('POST', '/tools/call', { body: flat });
  return [...errors, rest.body.backend_error, second.body.backend_error].map((error) => Object(error));
}

function ownOf(data: object): object {
  return Object.fromEntries(Object.entries(data).filter(([name]) => name.startsWith('OWN_')));
}

test('an error of a program shows no secrets that it got, and everything else, at each door', async () => {
  const hidden = Object.fromEntries(Object.keys(HIDDEN).map((name) => [name, '***']));
  for (const { message, data } of await errorsOf(app, 't', 'a')) {
    assert.is(message, 'failed with *** at debug');
    assert.equal(ownOf(data), { ...hidden, ...SHOWN, OWN_DATABASE: 'postgres://me:***@db.example/main' });
  }
});

const sensitive = { type: 'string', sensitive: true } as const;
const SEALED: TemplateDefinition = {
  ...{ id: 'sealed', name: 'Sealed', description: 'Has secrets.', version: '1.0.0' },
  ...{ command: process.execPath, args: ['-e', PROGRAM], transport: 'stdio' },
  config_schema: {
    properties: {
      region: { ...sensitive, env_mapping: 'OWN_REGION' },
      file: { $ref: '#/$defs/secret', env_mapping: 'OWN_KEY_FILE' },
      names: { type: 'array', items: { type: 'string' }, sensitive: true, env_mapping: 'OWN_NAMES' },
      more: { type: 'object', sensitive: true, env_mapping: 'OWN_MORE' },
      lines: { ...sensitive, env_mapping: 'OWN_LINES' },
      floor: { type: 'integer', sensitive: true, env_mapping: 'OWN_FLOOR' },
      level: { type: 'string', env_mapping: 'OWN_LOG_LEVEL' },
    },
    $defs: { secret: sensitive },
  },
};
const LINES = '-- BEGIN --\nfirst-line\n';
const SETTINGS = {
  ...{ region: 'north-7', file: 'blue-wall', names: ['alpha-1', 'beta-22'], more: { pass: 'gamma-3' } },
  ...{ lines: LINES, floor: 7, level: 'debug' },
};
const VARIABLES = {
  ...{ OWN_REGION: 'north-7', OWN_KEY_FILE: 'blue-wall', OWN_NAMES: 'alpha-1,beta-22' },
  ...{ OWN_MORE: '{"pass":"gamma-3"}', OWN_LINES: LINES, OWN_FLOOR: '7' },
};
const SECRET_NAMES = Object.keys(VARIABLES);

/** Nothing of the secrets is in the errors at each door, and in what operators see of the program. */
async function hidesAll(fixture: AppFixture, id: string): Promise<void> {
  const { gateway, ask } = fixture;
  const isHealthy = async () => gateway.instance('sealed', id).snapshot.healthy;
  assert.ok(await eventually(isHealthy, Boolean));
  for (const { message, data } of await errorsOf(fixture, 'sealed', id)) {
    assert.is(message, 'failed with undefined at debug');
    const hidden = Object.fromEntries(SECRET_NAMES.map((name) => [name, '***']));
    assert.equal(ownOf(data), { ...hidden, OWN_FLOOR: '7', OWN_LOG_LEVEL: 'debug' });
  }
  const output = Object((await ask('GET', `/servers/${id}`)).body).stderr;
  assert.equal(output.slice(0, 2), ['in *** with ***', '***']);
  assert.match(output[2], /^x{2000,2048}$/); // nothing of the secret that the cut divides
}

async function within(gateway: GatewayOptions, use: (fixture: AppFixture) => Promise<void>): Promise<void> {
  const fixture = await startApp({ gateway });
  try {
    await use(fixture);
  } finally {
    await fixture.close();
  }
}

test('a sensitive setting is secret whatever its variable is called, also where its template is unknown', async () => {
  const store = new MemoryStore();
  let id = '';
  await within({ store, definitions: [SEALED] }, async (fixture) => {
    const body = { template_name: 'sealed', config: SETTINGS };
    const made = await fixture.ask('POST', '/servers?wait=20', { body });
    assert.is(made.outcome, '201', made.text);
    assert.equal(made.body.secret_env_vars, SECRET_NAMES);
    const warning =
      'the value of OWN_FLOOR is too short or too common a word to be hidden in errors and output';
    assert.equal(made.body.warnings, [warning]);
    id = String(made.body.id);
    await hidesAll(fixture, id);
    await fixture.gateway.changeInstance('sealed', id, { weight: 2 });
  });
  // The next start, or another node.
  await within({ store }, async (fixture) => hidesAll(fixture, id));
});

const PLAIN = {
  ...{ id: 'one', command: process.execPath, args: ['-e', PROGRAM] },
  env_vars: { ...VARIABLES, OWN_LOG_LEVEL: 'debug' },
};

test('a registration names secret variables, and a template those of each program that is registered in it', async () => {
  const named = { ...PLAIN, secret_env_vars: SECRET_NAMES };
  await within({}, async (fixture) => {
    await fixture.gateway.register('sealed', named);
    await hidesAll(fixture, 'one');
  });
  await within({ definitions: [SEALED] }, async (fixture) => {
    await fixture.gateway.register('sealed', PLAIN);
    await hidesAll(fixture, 'one');
  });
});

test.run();
