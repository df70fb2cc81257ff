// Definitions of templates that are stored through the API: checks, effects, and what other nodes see.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../../../src/persistence/memory/memory-store.ts';
import { startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('stored definitions of templates');
const filed = { id: 'filed', name: 'Filed', description: 'Of the folder.', version: '1.0.0' };
const app = appFor(test, () => startWithAccounts({ gateway: { definitions: [filed] } }));
const weather = {
  ...{ id: 'weather', name: 'Weather', description: 'Forecasts.', version: '1.0.0', transport: 'stdio' },
  command: 'npx -y weather-mcp',
  load_balancer: { timeout: 7 },
  environment: { WEATHER_UNITS: 'metric' },
  config_schema: {
    type: 'object',
    properties: { key: { type: 'string', env_mapping: 'WEATHER_KEY', sensitive: true } },
    required: ['key'],
  },
};
const path = (template: string): string => `/gateway/templates/${template}/definition`;

test('a template exists from its definition on, with its settings, and is gone with it', async () => {
  const put = await app.as(app.admin, 'PUT', path('weather'), { body: weather });
  assert.equal([put.status, put.headers.get('location'), put.body], [201, path('weather'), weather]);
  const shown = await app.as(app.admin, 'GET', '/gateway/templates/weather');
  const { is_defined, is_stored, environment, load_balancer } = shown.body;
  assert.equal(
    [is_defined, is_stored, environment, Object(load_balancer).timeout],
    [true, true, ['WEATHER_UNITS'], 7],
  );
  assert.equal((await app.as(app.admin, 'GET', path('weather'))).body, weather);
  const again = { ...weather, id: undefined, load_balancer: { timeout: 8 } };
  assert.is((await app.as(app.admin, 'PUT', path('weather'), { body: again })).status, 200);
  assert.is(app.gateway.template('weather').policy.callTimeoutMs, 8_000);
  const server = await app.as(app.admin, 'POST', '/servers', {
    body: { template_name: 'weather', config: {} },
  });
  assert.is(server.outcome, '400 CONFIG_INCOMPLETE', 'the definition requires the key');
  assert.is((await app.as(app.admin, 'DELETE', path('weather'))).status, 204);
  assert.is((await app.as(app.admin, 'GET', '/gateway/templates/weather')).status, 404);
  const gone = await app.as(app.admin, 'DELETE', path('weather'));
  assert.is(gone.outcome, '404 TEMPLATE_NOT_FOUND');
  assert.is(gone.body.detail, 'The template "weather" has no stored definition.');
});

test('the memory of all large definitions is bounded', async () => {
  const { storedDefinitions } = app.gateway.internals;
  // Each takes 10 MB: its values take more than its text.
  const large = { ...weather, config_schema: { examples: Array.from({ length: 120_000 }, () => 0) } };
  const put = (n: number) =>
    storedDefinitions
      .put(`large-${n}`, { ...large, id: `large-${n}` })
      .catch((thrown: unknown) => String(thrown));
  const outcomes: unknown[] = [];
  for (let n = 0; n < 8; n += 1) outcomes.push(await put(n));
  const full =
    'GatewayError: The registry is full (64 MiB of large definitions): deregister or delete unused ones first.';
  assert.equal(outcomes.map(String), [...Array.from({ length: 6 }, () => 'true'), full, full]);
  await storedDefinitions.put('large-0', { ...weather, id: 'large-0' });
  assert.is(await put(6), true);
  for (let n = 0; n < 7; n += 1) await storedDefinitions.delete(`large-${n}`);
});

test('a template with instances or settings remains without its definition', async () => {
  const body = { ...weather, id: 'kept' };
  await app.as(app.admin, 'PUT', path('kept'), { body });
  await app.gateway.register('kept', { id: 'one', endpoint: 'http://127.0.0.1:1' });
  await app.as(app.admin, 'DELETE', path('kept'));
  const { body: record } = await app.as(app.admin, 'GET', '/gateway/templates/kept');
  assert.equal([record.is_defined, record.instances, Object(record.load_balancer).timeout], [false, 1, 60]);
  await app.as(app.admin, 'PUT', path('kept'), { body });
  await app.gateway.deregister('kept', 'one');
  await app.as(app.admin, 'DELETE', path('kept'));
  assert.not.ok(app.gateway.hasTemplate('kept'), 'the registration left no settings');
  await app.gateway.internals.catchUp();
  assert.not.ok(app.gateway.hasTemplate('kept'));
});

test('refuses what a file could not say, secrets, and templates of the folder', async () => {
  const refused: readonly [template: string, change: object, code: string, detail: RegExp][] = [
    ['filed', { id: 'filed' }, 'DUPLICATE_TEMPLATE', /"filed" has a definition in the folder/],
    ['other', {}, 'VALIDATION_ERROR', /id: is "weather", but the path names "other"/],
    ['weather', { version: '1' }, 'VALIDATION_ERROR', /version/],
    ['weather', { command: 'npx "x' }, 'VALIDATION_ERROR', /command/],
    [
      'weather',
      { environment: { API_TOKEN: 'letters-of-a-secret' } },
      'VALIDATION_ERROR',
      /API_TOKEN: a secret has no value/,
    ],
    [
      'weather',
      { environment: { WEATHER_KEY: 'letters-of-a-secret' } },
      'VALIDATION_ERROR',
      /WEATHER_KEY: a secret/,
    ],
    ['weather', { command: 'cat /proc/self/environ' }, 'COMMAND_NOT_ALLOWED', /\/proc/],
    [
      'weather',
      { command: undefined, endpoint: 'http://169.254.169.254/mcp' },
      'ENDPOINT_NOT_ALLOWED',
      /169/,
    ],
    ['weather', { description: 'x'.repeat(262_144) }, 'VALIDATION_ERROR', /262144 characters/],
  ];
  for (const [template, change, code, detail] of refused) {
    const answer = await app.as(app.admin, 'PUT', path(template), { body: { ...weather, ...change } });
    assert.is(answer.body.error_code, code, JSON.stringify(answer.body).slice(0, 500));
    assert.match(JSON.stringify(answer.body).replaceAll('\\"', '"'), detail);
    assert.not.match(answer.text, /letters-of-a-secret/);
  }
  assert.equal(app.gateway.internals.definitions.get('weather'), undefined);
});

test('are in force after a restart, and on other nodes after the next look at the store', async () => {
  const store = new MemoryStore();
  const one = await startApp({ gateway: { store } });
  const other = await startApp({ gateway: { store } });
  const { id: _, ...body } = weather;
  assert.is((await one.ask('PUT', path('weather'), { body })).status, 201);
  await other.gateway.internals.catchUp();
  assert.equal((await other.ask('GET', path('weather'))).body, weather);
  assert.is(other.gateway.template('weather').policy.callTimeoutMs, 7_000);
  const later = await startApp({ gateway: { store } });
  assert.ok(later.gateway.hasTemplate('weather'));
  assert.is((await later.ask('DELETE', path('weather'))).status, 204);
  await other.gateway.internals.catchUp();
  assert.equal([other.gateway.hasTemplate('weather'), other.gateway.templates()], [false, []]);
  await Promise.all([one.close(), other.close(), later.close()]);
});

test.run();
