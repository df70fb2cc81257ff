import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import { declaredVariables, serverInput } from '../../src/http/server-config.ts';
import type { TemplateDefinition } from '../../src/templates/definition.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the config of a server');

const definition = (over: Partial<TemplateDefinition> = {}): TemplateDefinition => ({
  ...{ id: 'weather', name: 'Weather', description: 'Tells it.', version: '1.0.0' },
  ...over,
});
const program = definition({
  ...{ command: 'npx', args: ['-y', 'weather-server'], transport: 'stdio' },
  environment: { UNITS: 'metric', REGION: 'eu' },
  config_schema: {
    required: ['api_key'],
    properties: {
      api_key: { type: 'string', env_mapping: 'WEATHER_KEY' },
      region: { type: 'string', enum: ['eu', 'us'] },
      days: { type: 'integer', env_mapping: 'WEATHER_DAYS' },
      tags: { type: 'array', items: { type: 'string' }, env_mapping: 'WEATHER_TAGS' },
      options: { type: 'object', env_mapping: 'WEATHER_OPTIONS' },
      nowhere: { type: 'string' },
    },
  },
});

/** What a config is refused with: the code, and the findings or the message. */
function refusal(config: object, from: TemplateDefinition | undefined): readonly unknown[] {
  try {
    serverInput('weather', config, from);
    return ['nothing'];
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const { items } = thrown.facts;
    return [thrown.code, items === undefined ? thrown.message : items.map(({ loc, type }) => [...loc, type])];
  }
}

test('says it all when it names an endpoint or a command', () => {
  const config = { endpoint: 'http://127.0.0.1:1', headers: { a: 'b' }, transport: 'http' as const };
  assert.equal(serverInput('weather', config, undefined), config);
  const remote = definition({ endpoint: 'http://elsewhere.example/mcp' });
  assert.equal(serverInput('weather', config, remote), config);
  const command = { command: 'serve', args: ['x'], working_dir: '/srv', env_vars: { A: 'b' } };
  assert.equal(serverInput('weather', command, remote), command);
});

test('is completed by the definition', () => {
  const remote = definition({ endpoint: 'http://elsewhere.example/mcp', transport: 'http' });
  assert.equal(serverInput('weather', { headers: { a: 'b' } }, remote), {
    ...{ endpoint: 'http://elsewhere.example/mcp', transport: 'http', headers: { a: 'b' } },
  });
});

test('sets the variables that the definition maps its settings to, over the defaults', () => {
  const config = {
    ...{ api_key: 'k', region: 'us', days: 3, tags: ['a', 'b'], options: { deep: true } },
    env_vars: { UNITS: 'imperial', EXTRA: 'x' },
  };
  assert.equal(serverInput('weather', config, program), {
    ...{ command: 'npx', args: ['-y', 'weather-server'], transport: 'stdio' },
    env_vars: {
      ...{ UNITS: 'imperial', REGION: 'us', WEATHER_KEY: 'k', WEATHER_DAYS: '3', WEATHER_TAGS: 'a,b' },
      ...{ WEATHER_OPTIONS: '{"deep":true}', EXTRA: 'x' },
    },
  });
});

test('names what is missing', () => {
  assert.equal(refusal({}, undefined), [
    'CONFIG_INCOMPLETE',
    'The server has neither "config.endpoint" nor "config.command", and there is no template.json for "weather".',
  ]);
  assert.equal(refusal({}, definition()), [
    'CONFIG_INCOMPLETE',
    'The server has neither "config.endpoint" nor "config.command", and neither is in the template "weather".',
  ]);
  assert.equal(refusal({ region: 'eu' }, program), [
    'CONFIG_INCOMPLETE',
    'The template needs "config.api_key".',
  ]);
  assert.equal(refusal({ api_key: 'k', nowhere: 'x' }, program), [
    'CONFIG_INCOMPLETE',
    'The template does not say where "config.nowhere" goes.',
  ]);
});

test('names the placeholders that nothing fills, unless the caller does', () => {
  const scratch = '${' + 'SCRATCH}';
  const files = definition({ command: 'serve', args: [scratch], environment: { FILE: `${scratch}/x` } });
  assert.equal(refusal({}, files), [
    'CONFIG_INCOMPLETE',
    'The template needs a folder of its own for each server: give "config.args", "config.env_vars.FILE".',
  ]);
  assert.equal(serverInput('weather', { args: ['/srv'], env_vars: { FILE: '/srv/x' } }, files), {
    ...{ command: 'serve', args: ['/srv'], env_vars: { FILE: '/srv/x' } },
  });
});

test('refuses settings that nobody knows and values of the wrong type', () => {
  assert.equal(refusal({ unheard_of: 1 }, undefined), [
    'VALIDATION_ERROR',
    [['body', 'config', 'unheard_of', 'extra_forbidden']],
  ]);
  assert.equal(refusal({ api_key: 'k', constructor: 1, ['__proto__']: 1 }, program), [
    'VALIDATION_ERROR',
    [
      ['body', 'config', 'constructor', 'extra_forbidden'],
      ['body', 'config', '__proto__', 'extra_forbidden'],
    ],
  ]);
  assert.equal(refusal({ api_key: 5, region: 'mars', days: 1.5 }, program), [
    'VALIDATION_ERROR',
    [
      ['body', 'config', 'api_key', 'string_type'],
      ['body', 'config', 'region', 'enum'],
      ['body', 'config', 'days', 'int_from_float'],
    ],
  ]);
});

test('refuses a setting that is too long for a variable', () => {
  assert.equal(refusal({ api_key: 'k'.repeat(40_000) }, program), [
    'VALIDATION_ERROR',
    [['body', 'config', 'env_vars', 'WEATHER_KEY', 'string_too_long']],
  ]);
});

const placed = definition({
  ...{ command: 'serve', args: ['--quiet'], endpoint: 'http://127.0.0.1:9/mcp', transport: 'http' },
  config_schema: {
    anyOf: [{ required: ['token'] }, { required: ['user'] }],
    properties: {
      folders: { type: 'array', items: { type: 'string' }, command_arg: true, default: ['/srv'] },
      root: { type: 'string', command_arg: '--root' },
      deep: { type: 'boolean', command_arg: '--deep' },
      paths: { type: 'string', command_arg: true, env_mapping: 'PATHS', env_separator: ':' },
      token: { type: 'string', header_mapping: 'Authorization', sensitive: true },
      user: { type: 'string', env_mapping: 'USER_NAME' },
      secret: { type: 'string', command_arg: '--secret', sensitive: true },
      level: { type: 'integer', env_mapping: 'LEVEL', default: 3 },
    },
  },
});

test('makes words, variables and headers of settings, and of the defaults of others', () => {
  const config: object = { token: 'Bearer s', root: '/r', deep: 'true', paths: '/a:/b', level: '7' };
  assert.equal(serverInput('weather', config, placed), {
    ...{ endpoint: 'http://127.0.0.1:9/mcp', transport: 'http', command: 'serve' },
    args: ['--quiet', '/srv', '--root', '/r', '--deep', '/a', '/b'],
    env_vars: { PATHS: '/a:/b', LEVEL: '7' },
    headers: { Authorization: 'Bearer s' },
  });
  const others: object = { user: 'u', folders: ['/x', '/y'], deep: false };
  const { args, env_vars } = serverInput('weather', others, placed);
  assert.equal([args, env_vars], [['--quiet', '/x', '/y'], { USER_NAME: 'u', LEVEL: '3' }]);
});

test('makes no option, and no word that others can read, of a setting', () => {
  assert.equal(refusal({ user: 'u', folders: ['/x', '--evil'] }, placed), [
    'VALIDATION_ERROR',
    [['body', 'config', 'folders', 'value_error']],
  ]);
  assert.equal(refusal({ user: 'u', secret: 'planted' }, placed), [
    'CONFIG_INCOMPLETE',
    'The template does not say where "config.secret" goes.',
  ]);
  assert.equal(refusal({ user: 'u', command: 'other', root: '/r' }, placed), [
    'VALIDATION_ERROR',
    [['body', 'config', 'root', 'extra_forbidden']],
  ]);
});

test('holds settings against all of the schema', () => {
  assert.is(refusal({ root: '/r' }, placed)[0], 'VALIDATION_ERROR');
  assert.is(refusal({ user: 'u', level: 'high' }, placed)[0], 'VALIDATION_ERROR');
});

test('names the setting that fills a placeholder', () => {
  const scratch = '${' + 'SCRATCH}';
  const files = definition({
    ...{ command: 'serve', environment: { FILE: `${scratch}/x` } },
    config_schema: {
      properties: {
        folder: { type: 'string', default: scratch, command_arg: true },
        file: { type: 'string', env_mapping: 'FILE' },
      },
    },
  });
  assert.equal(refusal({}, files), [
    'CONFIG_INCOMPLETE',
    'The template needs a folder of its own for each server: give "config.folder", "config.file".',
  ]);
  const given: object = { folder: '/srv', file: '/srv/x' };
  assert.equal(serverInput('weather', given, files), {
    ...{ command: 'serve', args: ['/srv'], env_vars: { FILE: '/srv/x' } },
  });
});

test('starts no container', () => {
  const image = definition({ docker_image: 'example/weather:1', command: 'python', args: ['server.py'] });
  assert.equal(refusal({}, image), [
    'CONFIG_INCOMPLETE',
    'The server has neither "config.endpoint" nor "config.command", and the template "weather" runs in containers of example/weather:1, which the gateway does not start.',
  ]);
  const command = { command: 'docker', args: ['run', '-i', '--rm', 'example/weather:1'] };
  assert.equal(serverInput('weather', command, image), command);
});

test('knows which variables a template declares', () => {
  assert.equal(declaredVariables(undefined), []);
  assert.equal(declaredVariables(program).sort(), [
    ...['REGION', 'UNITS', 'WEATHER_DAYS', 'WEATHER_KEY', 'WEATHER_OPTIONS', 'WEATHER_TAGS'],
  ]);
});

test.run();
