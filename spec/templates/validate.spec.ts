// The published schema and the reader of the gateway say the same.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { readTemplate, TemplateFile } from '../../src/templates/definition.ts';
import { TEMPLATE_SCHEMA, validateTemplate } from '../../src/templates/validate.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template schema');
const smallest = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };

test('has the properties that the gateway reads', () => {
  const schema = JSON.parse(readFileSync(TEMPLATE_SCHEMA, 'utf8'));
  assert.is(schema.$schema, 'http://json-schema.org/draft-07/schema#');
  assert.equal(Object.keys(schema.properties), ['$schema', ...Object.keys(TemplateFile.properties)]);
  assert.equal(schema.required, ['id', 'name', 'description', 'version']);
});

test('refuses what the gateway refuses, and nothing else', async () => {
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
  const judged = await Promise.all(samples.map((sample) => validateTemplate(JSON.stringify(sample))));
  assert.equal(
    samples.filter((_, index) => (judged[index]?.violations.length === 0) !== verdicts[index]),
    [],
  );
});

test.run();
