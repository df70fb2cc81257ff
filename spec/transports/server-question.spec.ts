// Who is asked when a server asks.

import * as assert from 'uvu/assert';
import { outcomeOf } from '../../src/transports/handshake.ts';
import { everyCapability, noCapability } from '../conformance/upstream.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('server question');

const methods = ['sampling/createMessage', 'elicitation/create', 'roots/list', 'tasks/get'];

test('the gateway answers ping, whoever is asked', () => {
  for (const profile of [undefined, noCapability, everyCapability]) {
    assert.equal(outcomeOf('ping', profile), { result: {} });
  }
});

test('a client is asked for what it declared, and for what is not known here', () => {
  for (const method of methods) assert.is(outcomeOf(method, everyCapability), 'ask');
  const sampler = { ...noCapability, capabilities: { sampling: {} } };
  assert.is(outcomeOf('sampling/createMessage', sampler), 'ask');
  assert.is(outcomeOf('tasks/get', sampler), 'ask');
  assert.equal(outcomeOf('roots/list', sampler), { error: { code: -32601, message: 'Method not found' } });
});

test('nobody is asked where nothing is declared', () => {
  for (const profile of [undefined, noCapability]) {
    for (const method of methods) assert.is.not(outcomeOf(method, profile), 'ask');
  }
});

test.run();
