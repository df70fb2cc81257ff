// The fields of a template.json, and the list of all faults of an invalid one.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import * as assert from 'uvu/assert';
import { fillPlaceholders, readTemplate, TemplateError } from '../../src/templates/definition.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template definition');

const smallest = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };

const full = {
  ...smallest,
  author: 'somebody',
  requires: ['node>=20'],
  ports: [8080],
  environment: { LOG_LEVEL: 'debug', DATA: '${SCRATCH}/data' },
  capabilities: ['read', 'write', 'tools', 'resources', 'prompts'],
  tags: ['demo'],
  command: 'node',
  args: ['server.js'],
  transport: 'stdio',
  endpoint: 'http://127.0.0.1:8080/mcp',
  load_balancer: { strategy: 'consistent_hash', hash_on: 'argument:user', ejection_failures: 3 },
  config_schema: { type: 'object', properties: { key: { type: 'string' } }, 'x-anything': [1] },
};

function faultsOf(value: unknown): readonly string[] {
  try {
    readTemplate(typeof value === 'string' ? value : JSON.stringify(value));
  } catch (thrown) {
    assert.ok(thrown instanceof TemplateError);
    return thrown.issues.toSorted();
  }
  return [];
}

test('reads a definition with every field, and one with only the required fields', () => {
  assert.equal(readTemplate(JSON.stringify(full)), full);
  assert.equal(readTemplate(JSON.stringify(smallest)), smallest);
});

test('lists every fault of a file, more than eight of them', () => {
  const wrong = { id: 'Demo', name: '', version: '1.2', tags: 'demo', args: [1], ports: [0, 'x'] };
  assert.equal(faultsOf({ ...wrong, environment: { lower: 'x', GOOD: {} }, transport: 'websocket' }), [
    ...['args[0]: Input should be a valid string', 'description: Field required'],
    ...['environment.GOOD: Input should be a valid string', 'environment.lower: is not a valid name'],
    "id: String should match pattern '^[a-z][a-z0-9-]*$'",
    'name: String should have at least 1 character',
    ...['ports[0]: Input should be greater than or equal to 1', 'ports[1]: Input should be a valid integer'],
    'tags: Input should be a valid list',
    "transport: Input should be 'http', 'sse' or 'stdio'",
    "version: String should match pattern '^\\d+\\.\\d+\\.\\d+$'",
  ]);
});

test('refuses invalid and unknown settings of the load balancer', () => {
  const load_balancer = { hash_on: 'user', ejection_failures: 0, tool_timeouts: { slow: 0 }, pool: 1 };
  assert.equal(faultsOf({ ...smallest, load_balancer }), [
    'load_balancer.ejection_failures: Input should be greater than or equal to 1',
    "load_balancer.hash_on: String should match pattern '^(principal|argument:.{1,256})$'",
    'load_balancer.pool: is not a valid name',
    'load_balancer.tool_timeouts.slow: Input should be greater than or equal to 0.1',
  ]);
});

test('refuses a config_schema with a pattern that is not a regular expression', () => {
  const withPattern = (pattern: string) => ({
    ...smallest,
    config_schema: { type: 'object', properties: { key: { type: 'string', pattern } } },
  });
  assert.equal(faultsOf(withPattern('^[a-z]+$')), []);
  assert.equal(faultsOf(withPattern('(')), [
    'config_schema: Invalid regular expression: /(/u: Unterminated group',
  ]);
});

test('refuses a definition that is nested too deeply, and a config_schema that is too large', () => {
  const levels = 15_000;
  const deep = `{"not":${'{"not":'.repeat(levels)}{}${'}'.repeat(levels)}}`;
  assert.equal(faultsOf(`${JSON.stringify(smallest).slice(0, -1)},"config_schema":${deep}}`), [
    'nested deeper than 128 levels',
  ]);
  const enumeration = { type: 'string', enum: Array.from({ length: 20 }, (_, at) => at) };
  const names = Array.from({ length: 20_000 }, (_, at) => [`p${at}`, enumeration]);
  const config_schema = { properties: Object.fromEntries(names) };
  assert.equal(faultsOf({ ...smallest, config_schema }), ['config_schema: too large']);
});

test('refuses a command with an open quote, and a placeholder that nothing fills', () => {
  assert.equal(faultsOf({ ...smallest, command: 'run "it' }), [
    'command: the " at character 5 is never closed',
  ]);
  const faults = faultsOf({
    ...smallest,
    command: 'run',
    args: ['ok', '${SCRTCH}'],
    environment: { KEY: '${TOKEN}-${lower}-$HOME' },
  });
  assert.equal(faults, [
    'args[1]: nothing fills the placeholder ${SCRTCH}',
    'environment.KEY: nothing fills the placeholder ${TOKEN}',
  ]);
});

test('replaces every ${SCRATCH} by the folder, also with special characters in its path', () => {
  const filled = fillPlaceholders('${SCRATCH}/a:${SCRATCH}', 'C:\\$& my $1');
  assert.is(filled, 'C:\\$& my $1/a:C:\\$& my $1');
});

test('replaces no other text than ${SCRATCH}', () => {
  const text = '$SCRATCH ${scratch} ${OTHER} {SCRATCH} $${}';
  assert.is(fillPlaceholders(text, '/x'), text);
});

test.run();
