// The published schema and the reader of the gateway accept the same definitions.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { readTemplate, TemplateFile } from '../../src/templates/definition.ts';
import { tolerated } from '../../src/templates/tolerant.ts';
import { validateTemplate } from '../../src/templates/validate.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template schema');
const smallest = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };

test('has the properties that the gateway reads', () => {
  const schema = JSON.parse(
    readFileSync(new URL('../../schemas/template.schema.json', import.meta.url), 'utf8'),
  );
  assert.is(schema.$schema, 'http://json-schema.org/draft-07/schema#');
  assert.equal(Object.keys(schema.properties), ['$schema', ...Object.keys(TemplateFile.properties)]);
  assert.equal(schema.required, ['id', 'name', 'description', 'version']);
});

test('refuses exactly the definitions that the gateway refuses', async () => {
  const samples: Record<string, unknown>[] = [
    ...Object.keys(smallest).map((name) => ({ ...smallest, [name]: undefined })),
    ...Object.keys(smallest).map((name) => ({ ...smallest, [name]: '' })),
    ...['a', 'a1-b', '1a', 'A', 'a_b', 'a'.repeat(129)].map((id) => ({ ...smallest, id })),
    ...['1.0', '1.2.3', '1.2.3-beta', 'v1.2.3'].map((version) => ({ ...smallest, version })),
    ...[[], [1], [0], [65_536], [1.5], { 80: 80 }].map((ports) => ({ ...smallest, ports })),
    ...[{}, { A: 'b' }, { a: 'b' }, { A: 1 }, []].map((environment) => ({ ...smallest, environment })),
    ...[[], ['read', 'prompts'], ['fly'], [{}], 'read'].map((capabilities) => ({
      ...smallest,
      capabilities,
    })),
    ...[[], ['x'], [1], 'x'].map((tags) => ({ ...smallest, tags })),
    ...[['node>=20'], [1], 'node'].map((requires) => ({ ...smallest, requires })),
    ...['stdio', 'http', 'sse', 'websocket', {}].map((transport) => ({ ...smallest, transport })),
    ...['run it', '', ['run'], 'run "it'].map((command) => ({ ...smallest, command })),
    ...[{}, { type: 'object' }, [], 'x'].map((config_schema) => ({ ...smallest, config_schema })),
    ...[{}, { timeout: 5 }, { timeout: 0 }, { pool: 1 }, [], 'x'].map((load_balancer) => ({
      ...smallest,
      load_balancer,
    })),
    ...[
      { mode: 'oauth', who: 'user' },
      { mode: 'none' },
      { who: 'user' },
      { mode: 'oauth', client_id: 'x' },
      'x',
    ].map((auth) => ({ ...smallest, auth })),
    { ...smallest, anything: { else: true } },
  ];
  const verdicts = samples.map((sample) => {
    try {
      readTemplate(JSON.stringify(sample));
      return true;
    } catch {
      return false;
    }
  });
  assert.ok(verdicts.includes(true) && verdicts.includes(false));
  const judged = await Promise.all(
    samples.map((sample) => validateTemplate(JSON.stringify(sample), { isTolerant: true })),
  );
  const disputed = samples.filter((_, index) => (judged[index]?.violations.length === 0) !== verdicts[index]);
  assert.equal(disputed, []);
});

/** A definition in the form of another platform. */
const foreign = {
  name: 'Files',
  description: 'Reads and writes files.',
  version: '1.0.0',
  category: 'File System',
  tags: ['files'],
  docker_image: 'example/mcp-files',
  docker_tag: '2.1',
  ports: { '8080': 7071 },
  command: ['python', '-m', 'server'],
  transport: { default: 'streamable-http', supported: ['http', 'stdio'], port: 7071 },
  capabilities: [{ name: 'greeting', description: 'Says hello.' }, { name: 'resources' }],
  config_schema: {
    type: 'object',
    properties: {
      allowed_dirs: {
        ...{ type: 'string', env_mapping: 'DIRS', volume_mount: true, command_arg: true, env_separator: ' ' },
        required: true,
      },
      api_key: { type: 'string', env_mapping: 'API_KEY', sensitive: true, command_arg: true },
    },
    anyOf: [{ required: ['api_key'] }, { required: ['allowed_dirs'] }],
  },
  tool_discovery: 'dynamic',
  tool_endpoint: '/tools',
  origin: 'external',
  examples: {},
};

test('reads definitions of other platforms', () => {
  const { config_schema, ...read } = readTemplate(JSON.stringify(foreign), 'files');
  assert.equal(read, {
    ...{ id: 'files', name: 'Files', description: 'Reads and writes files.', version: '1.0.0' },
    ...{ tags: ['files', 'file-system'], docker_image: 'example/mcp-files:2.1', ports: [7071] },
    ...{ command: 'python', args: ['-m', 'server'], transport: 'http', capabilities: ['tools', 'resources'] },
  });
  assert.equal(config_schema?.required, ['allowed_dirs']);
  assert.equal(Object(config_schema?.properties).allowed_dirs, {
    ...{ type: 'string', env_mapping: 'DIRS', volume_mount: true, command_arg: true, env_separator: ' ' },
  });
});

test('reports how it read a definition of another platform, and refuses it if it is not tolerant', async () => {
  const text = JSON.stringify(foreign, null, 2);
  const { violations, warnings, readings } = await validateTemplate(text, {
    isTolerant: true,
    folder: 'files',
  });
  assert.equal([violations, warnings], [[], []]);
  const remarks = readings.map(({ pointer, message }) => `${pointer} ${message}`);
  assert.equal(remarks, [
    '/id is "files", the name of the folder',
    '/ports is read as [7071], the ports of the container',
    '/capabilities is read as ["tools","resources"]; the server itself lists its tools',
    '/docker_tag makes the image example/mcp-files:2.1',
    '/command is read as the program "python" and 2 arguments',
    '/transport is read as "http"',
    '/config_schema/properties/allowed_dirs is a path of this machine: no volume is mounted',
    '/config_schema/properties/allowed_dirs is required',
    '/config_schema/properties/api_key is sensitive: its value is never a word of the command',
    '/category is read as the tag "file-system"',
    '/tool_discovery has no effect: tools are listed by the server itself',
    '/tool_endpoint has no effect: tools are listed by the server itself',
    '/origin has no effect',
    '/examples has no effect',
  ]);
  const strict = await validateTemplate(text);
  const places = ['', '/ports', '/command', '/transport', '/capabilities/0', '/capabilities/1'];
  const found = new Set(strict.violations.map(({ pointer }) => pointer));
  const missing = places.filter((place) => !found.has(place));
  assert.equal(missing, []);
});

test('reads a default transport, an image tag, ports in other forms and an empty command', () => {
  const read = (fields: object) => {
    const { command, docker_image, transport, ports } = readTemplate(
      JSON.stringify({ ...smallest, ...fields }),
    );
    return [command, docker_image, transport, ports];
  };
  assert.equal(read({ command: [], docker_image: 'host:5000/a:1', docker_tag: 'latest' }), [
    ...[undefined, 'host:5000/a:1', undefined, undefined],
  ]);
  assert.equal(read({ docker_image: 'host:5000/a', docker_tag: 'latest' })[1], 'host:5000/a:latest');
  assert.equal(read({ transport: { supported: ['stdio'], port: 9 } }), [undefined, undefined, 'stdio', [9]]);
  // Not a member that every object has.
  assert.is(read({ transport: { default: 'constructor', supported: ['stdio'] } })[2], 'stdio');
  assert.equal(read({ ports: { '80/tcp': null } })[3], [80]);
  assert.throws(
    () => read({ transport: { default: 'websocket' } }),
    /transport: Input should be 'http', 'sse' or 'stdio'/,
  );
  for (const port of [{ toString: 1 }, [{ toString: 1 }]])
    assert.throws(() => read({ ports: { '80': port } }), /^ports\[0\]: /);
});

const fields = ['id', 'ports', 'capabilities', 'docker_image', 'docker_tag', 'command', 'args', 'transport'];
const others = ['environment', 'config_schema', 'category', 'tags', 'tool_discovery', 'origin', '__proto__'];
const member = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.record({ default: fc.constantFrom('http', 'x', 5), supported: fc.array(fc.string()), port: fc.nat() }),
  fc.record({
    properties: fc.dictionary(fc.string(), fc.record({ required: fc.boolean(), sensitive: fc.boolean() })),
  }),
  fc.array(fc.record({ name: fc.constantFrom('read', 'x', null) })),
);

test('reads any object without an error, and its own result unchanged', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...fields, ...others), member), (written) => {
      const copy: unknown = JSON.parse(JSON.stringify(written));
      const { value } = tolerated(copy, 'folder');
      const shown = JSON.parse(JSON.stringify(tolerated(value, 'folder').value));
      assert.equal(shown, JSON.parse(JSON.stringify(value)));
      assert.equal(copy, JSON.parse(JSON.stringify(written)));
    }),
    { numRuns: 1_000 },
  );
});

test('refuses a config_schema that is not a JSON Schema, together with other violations', async () => {
  const $schema = 'https://json-schema.org/draft/2020-12/schema';
  const config_schema = { $schema, type: 'object', properties: { a: { type: 'strin' } }, required: 'a' };
  const { violations } = await validateTemplate(JSON.stringify({ ...smallest, ports: 1, config_schema }));
  const places = violations.map(({ pointer }) => pointer);
  for (const place of ['/ports', '/config_schema/properties/a/type', '/config_schema/required'])
    assert.ok(places.includes(place), place);
});

test.run();
