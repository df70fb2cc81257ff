import { Value } from 'typebox/value';
import * as assert from 'uvu/assert';
import { InstanceId, InstanceInput, MAX_WEIGHT, RegisterInput } from '../../src/domain/instance.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('instance');

/** Those of the inputs that are taken, so that a wrong one is seen in the difference. */
const taken = (inputs: readonly unknown[]) => inputs.filter((input) => Value.Check(InstanceInput, input));

test('takes letters, digits, dots, hyphens and underscores for an id', () => {
  const ids = ['a', 'A1', '7', 'weather-0a1b', 'a.b_c-d', 'a'.repeat(128)];
  assert.equal(
    ids.filter((id) => Value.Check(InstanceId, id)),
    ids,
  );
});

test('takes nothing else for an id', () => {
  const ids = ['', '.a', '-a', '_a', 'a b', 'a/b', 'a\n', 'ä', 'a'.repeat(129), 7];
  assert.equal(
    ids.filter((id) => Value.Check(InstanceId, id)),
    [],
  );
});

test('takes an endpoint, a command, or everything there is', () => {
  const inputs = [
    {},
    { endpoint: 'http://localhost:3000' },
    { command: 'npx -y server', args: [] },
    {
      id: 'a',
      endpoint: 'http://localhost:3000/mcp',
      command: 'server',
      args: ['--port', '3000'],
      working_dir: '/srv',
      env_vars: { TOKEN: 'x', _A1: '' },
      headers: { 'X-Key': 'x', "!#$%&'*+.^_`|~": 'y' },
      transport: 'stdio',
      weight: MAX_WEIGHT,
      metadata: { region: 'eu', tags: [1, null], '': {} },
    },
  ];
  assert.equal(taken(inputs), inputs);
});

test('refuses fields that are unknown, empty, too long or of another type', () => {
  const refused = [
    { url: 'http://localhost' },
    { endpoint: '' },
    { endpoint: 'x'.repeat(2049) },
    { command: '' },
    { command: ['server'] },
    { args: 'a b' },
    { args: Array.from({ length: 257 }, () => 'a') },
    { working_dir: '' },
    { transport: 'in-process' },
    { transport: 'websocket' },
    { metadata: [] },
  ];
  assert.equal(taken(refused), []);
});

test('takes whole weights from 1 to 1 000', () => {
  const weights = [-1, 0, 1, 1.5, 1_000, 1_001, '5'].map((weight) => ({ weight }));
  assert.equal(taken(weights), [{ weight: 1 }, { weight: 1_000 }]);
});

test('refuses the name of an environment variable that no shell would take', () => {
  const names = ['', '1A', 'A B', 'A=B', 'A-B', 'A\n', 'A\0'];
  assert.equal(taken(names.map((name) => ({ env_vars: { [name]: 'x' } }))), []);
});

test('refuses the name of a header that HTTP would not take', () => {
  const names = ['', 'a b', 'a:b', 'a\r\nb', 'ä', 'a\0'];
  assert.equal(taken(names.map((name) => ({ headers: { [name]: 'x' } }))), []);
});

test('refuses variables and headers whose value is no text', () => {
  assert.equal(taken([{ env_vars: { A: 1 } }, { env_vars: { A: null } }, { headers: { a: ['x'] } }]), []);
});

test('refuses a key of metadata longer than 256 characters', () => {
  const longest = { metadata: { ['k'.repeat(256)]: 1 } };
  assert.equal(taken([longest, { metadata: { ['k'.repeat(257)]: 1 } }]), [longest]);
});

test('takes a key of metadata that has several lines', () => {
  const input = { metadata: { 'a\nb': 1 } };
  assert.equal(taken([input]), [input]);
});

test('takes a registration with a template, an instance and perhaps settings', () => {
  const instance = { endpoint: 'http://localhost:3000' };
  const inputs = [
    { template_name: 'weather', instance },
    { template_name: 'weather', instance, load_balancer: { strategy: 'random' } },
    { instance },
    { template_name: 'weather' },
    { template_name: 'Weather', instance },
    { template_name: 'weather', instance, load_balancer: { strategy: 'fastest' } },
    { template_name: 'weather', instance, weight: 1 },
  ];
  assert.equal(
    inputs.filter((input) => Value.Check(RegisterInput, input)),
    inputs.slice(0, 2),
  );
});

test.run();
