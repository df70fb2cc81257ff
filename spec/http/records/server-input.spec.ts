import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { declaredVariables, serverInput } from '../../../src/http/records/server-input.ts';
import type { TemplateDefinition } from '../../../src/templates/definition.ts';
import { suite } from '../../helpers/suite.ts';

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
    additionalProperties: false,
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

/** The refusal of a config: the code, and the validation issues or the message. */
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

test('is used unchanged when it names an endpoint or a command', () => {
  const config = { endpoint: 'http://127.0.0.1:1', headers: { a: 'b' }, transport: 'http' as const };
  assert.equal(serverInput('weather', config, undefined), config);
  const remote = definition({ endpoint: 'http://elsewhere.example/mcp' });
  assert.equal(serverInput('weather', config, remote), config);
  const command = { command: 'serve', args: ['x'], working_dir: '/srv', env_vars: { A: 'b' } };
  assert.equal(serverInput('weather', command, remote), command);
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
      level: { $ref: '#/$defs/count', env_mapping: 'LEVEL', default: 3 },
      limits: { type: 'object', properties: { low: { $ref: '#/$defs/count' } }, env_mapping: 'LIMITS' },
      ports: { type: 'array', items: { type: 'integer' }, command_arg: '--port' },
    },
    $defs: { count: { type: 'integer' } },
  },
});

test('becomes arguments, variables and headers; settings without a value use their default', () => {
  const config: object = {
    token: 'Bearer s',
    root: '/r',
    deep: 'true',
    paths: '/a:/b',
    level: '7',
    ports: '1,2',
  };
  assert.equal(serverInput('weather', config, placed), {
    ...{ endpoint: 'http://127.0.0.1:9/mcp', transport: 'http', command: 'serve' },
    args: ['--quiet', '/srv', '--root', '/r', '--deep', '/a', '/b', '--port', '1', '--port', '2'],
    env_vars: { PATHS: '/a:/b', LEVEL: '7' },
    headers: { Authorization: 'Bearer s' },
  });
  const others: object = { user: 'u', folders: ['/x', '/y'], deep: false };
  const { args, env_vars } = serverInput('weather', others, placed);
  assert.equal([args, env_vars], [['--quiet', '/x', '/y'], { USER_NAME: 'u', LEVEL: '3' }]);
});

const scratch = '${' + 'SCRATCH}';
const files = definition({ command: 'serve', args: [scratch], environment: { FILE: `${scratch}/x` } });
const settable = definition({
  ...{ command: 'serve', environment: { FILE: `${scratch}/x` } },
  config_schema: {
    properties: {
      folder: { type: 'string', default: scratch, command_arg: true },
      file: { type: 'string', env_mapping: 'FILE' },
    },
  },
});
const image = definition({ docker_image: 'example/weather:1', command: 'python', args: ['server.py'] });

test('replaces the placeholders of a template, and gives the command for a template of a container image', () => {
  const filled = { command: 'serve', args: ['/srv'], env_vars: { FILE: '/srv/x' } };
  assert.equal(serverInput('weather', { args: ['/srv'], env_vars: { FILE: '/srv/x' } }, files), filled);
  const given: object = { folder: '/srv', file: '/srv/x' };
  assert.equal(serverInput('weather', given, settable), filled);
  const command = { command: 'docker', args: ['run', '-i', '--rm', 'example/weather:1'] };
  assert.equal(serverInput('weather', command, image), command);
});

const NEITHER =
  'Neither "config" nor the template "weather" has an "endpoint" or a "command" for the server.';
const SCRATCHED = 'The template requires a separate folder for each server: set';
const key = { api_key: 'k' };
const user = { user: 'u' };

/** The config, the definition, and what is missing. */
const INCOMPLETE: readonly (readonly [config: object, from: TemplateDefinition | undefined, said: string])[] =
  [
    [{}, undefined, NEITHER],
    [{}, image, NEITHER],
    [{ region: 'eu' }, program, 'The template needs "config.api_key".'],
    [{ ...key, nowhere: 'x' }, program, 'The template does not say where "config.nowhere" goes.'],
    // Other users of the machine can read the arguments of a command.
    [{ ...user, secret: 'planted' }, placed, 'The template does not say where "config.secret" goes.'],
    [{}, files, `${SCRATCHED} "config.args", "config.env_vars.FILE".`],
    [{}, settable, `${SCRATCHED} "config.folder", "config.file".`],
  ];
test('is refused with CONFIG_INCOMPLETE, which names the missing setting', () => {
  for (const [config, from, said] of INCOMPLETE)
    assert.equal(refusal(config, from), ['CONFIG_INCOMPLETE', said]);
});

/** The config, the definition, and the settings that are refused. */
const INVALID: readonly (readonly [config: object, from: TemplateDefinition | undefined, issues: string])[] =
  [
    [{ unheard_of: 1 }, undefined, 'unheard_of extra_forbidden'],
    [{ ...key, ['__proto__']: 1 }, program, '__proto__ extra_forbidden'],
    [{ ...key, constructor: 1 }, program, 'constructor extra_forbidden'],
    [
      { api_key: 5, region: 'mars', days: 1.5 },
      program,
      'api_key string_type, region enum, days int_from_float',
    ],
    [{ ...user, folders: ['/x', '--evil'] }, placed, 'folders value_error'],
    [{ ...user, paths: '/x:--evil' }, placed, 'paths value_error'],
    [{ ...user, command: 'other', root: '/r' }, placed, 'root extra_forbidden'],
    [{ root: '/r' }, placed, ' value_error'],
    [{ api_key: 'k', days: 2 ** 53 }, program, 'days value_error'],
    [{ api_key: 'k', days: '9007199254740993' }, program, 'days value_error'],
    [{ api_key: 'k', options: { deep: [Number('1e400')] } }, program, 'options.deep.0 value_error'],
    [{ ...user, level: 'high', limits: { low: 'x' } }, placed, 'level int_type, limits.low int_type'],
  ];
test('is refused for unknown settings, values of the wrong type, and settings that do not fit together', () => {
  for (const [config, from, said] of INVALID) {
    const [code, issues] = refusal(config, from);
    const reported = Array.isArray(issues)
      ? issues.map((one) => `${one.slice(2, -1).join('.')} ${one.at(-1)}`)
      : [];
    assert.equal([code, reported.join(', ')], ['VALIDATION_ERROR', said]);
  }
});

test('is refused where the check by the schema of the template does not end', () => {
  const withSchema = (schema: object) =>
    definition({ command: 'node', config_schema: { properties: { name: schema } } });
  const refused = ['VALIDATION_ERROR', [['body', 'config', 'value_error']]];
  // Each further letter doubles the time of such a pattern.
  const hours = withSchema({ type: 'string', pattern: '^(a+)+$', env_mapping: 'NAME' });
  assert.equal(refusal({ name: `${'a'.repeat(60)}!` }, hours), refused);
  assert.equal(refusal({ name: 'b' }, hours), [
    'VALIDATION_ERROR',
    [['body', 'config', 'name', 'string_pattern_mismatch']],
  ]);
  const good = { name: 'a'.repeat(60), env_vars: {} };
  assert.equal(serverInput('weather', good, hours).env_vars, { NAME: good.name });
  const endless = withSchema({ anyOf: [{ $ref: '#/properties/name' }, { type: 'number' }] });
  assert.equal(refusal({ name: 'a' }, endless), refused);
});

test('lists the environment variables that a template declares', () => {
  assert.equal(declaredVariables(undefined), []);
  assert.equal(declaredVariables(program).sort(), [
    ...['REGION', 'UNITS', 'WEATHER_DAYS', 'WEATHER_KEY', 'WEATHER_OPTIONS', 'WEATHER_TAGS'],
  ]);
});

test.run();
