// What registers an instance of a template.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import * as assert from 'uvu/assert';
import { instanceInputOf } from '../../src/templates/launch.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('instance of a template');

const template = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };
const values = { SCRATCH: '/tmp/my scratch' };

test('fills placeholders in command, arguments and environment', () => {
  const input = instanceInputOf(
    {
      ...template,
      transport: 'stdio',
      command: '${SCRATCH}/run',
      args: ['--dir', '${SCRATCH}', '"as is"'],
      environment: { FILE: '${SCRATCH}/f' },
    },
    values,
  );
  assert.equal(input, {
    transport: 'stdio',
    command: '/tmp/my scratch/run',
    args: ['--dir', '/tmp/my scratch', '"as is"'],
    env_vars: { FILE: '/tmp/my scratch/f' },
  });
});

test('splits a command into words before it fills them', () => {
  const input = instanceInputOf({ ...template, command: 'run "a b" ${SCRATCH}' }, values);
  assert.equal(input, { command: 'run', args: ['a b', '/tmp/my scratch'] });
});

test('gives the environment to a command only', () => {
  const endpoint = 'http://127.0.0.1:8080/mcp';
  assert.equal(instanceInputOf({ ...template, endpoint, environment: { A: 'b' } }, values), { endpoint });
});

test.run();
