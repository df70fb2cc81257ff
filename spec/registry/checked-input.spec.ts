// Input of programs and settings, checked by the rules of the routes.

import * as assert from 'uvu/assert';
import { GatewayError } from '../../src/domain/errors.ts';
import type { InstanceInput } from '../../src/domain/instance.ts';
import {
  checkedInstance,
  checkedInstanceChange,
  checkedTemplateChange,
  checkSettings,
} from '../../src/registry/checked-input.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: checked input');
const endpoint = 'http://127.0.0.1:9/mcp';
function refusal(work: () => unknown): GatewayError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('it was taken');
}

test('what is taken is a copy, down to its records', () => {
  const input = { endpoint, args: ['a'], headers: { a: 'b' }, env_vars: { A: 'b' }, metadata: { a: ['b'] } };
  const copy = checkedInstance('t', input, {});
  assert.equal(copy, input);
  for (const name of ['args', 'headers', 'env_vars', 'metadata'] as const)
    assert.is.not(copy[name], input[name], name);
  const change = { weight: 5, metadata: { a: { b: 1 } } };
  assert.equal(checkedInstanceChange(change), change);
  assert.is.not(checkedInstanceChange(change).metadata, change.metadata);
  assert.equal(checkedTemplateChange({ timeout: null }), { timeout: null });
});

test('what is undefined is not there', () => {
  const input: InstanceInput = Object({
    endpoint,
    weight: undefined,
    env_vars: { A: 'b', TOKEN: undefined },
  });
  assert.equal(checkedInstance('t', input, {}).env_vars, { A: 'b' });
});

test('metadata nested too deeply, as no body may be, is refused', () => {
  let deep: Record<string, unknown> = {};
  for (let level = 0; level < 200; level += 1) deep = { deep };
  const { facts } = refusal(() => checkedInstance('t', { endpoint, metadata: deep }, {}));
  assert.match(String(facts.items?.[0]?.msg), 'nested deeper than 128 levels');
});

test('says of each that cannot be followed why, and not what it was', () => {
  const settings = { strategy: 'secret', timeout: 0.5, retries: 3 };
  const error = refusal(() => checkSettings(Object(settings)));
  assert.is(error.code, 'VALIDATION_ERROR');
  const found = error.facts.items?.map(({ msg }) => msg.split(':')[0]);
  assert.equal(new Set(found), new Set(['retries', 'strategy', 'timeout']));
  assert.equal(error.facts.items?.[0]?.loc, ['body', 'load_balancer']);
  assert.not.match(JSON.stringify(error.facts.items), 'secret');
});

test.run();
