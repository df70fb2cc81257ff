import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import {
  callKey,
  invalidParams,
  type ModernCall,
  pathKey,
} from '../../../src/protocol/modern/modern-call.ts';
import { suite } from '../../helpers/suite.ts';
import { ModernScriptedBackends } from './modern-harness.ts';

const test = suite('modern call');

function call(
  change: Partial<ModernCall> = {},
  params: JsonObject = { name: 'a', arguments: { x: 1, y: [2] } },
): ModernCall {
  return {
    id: 1,
    method: 'tools/call',
    params,
    envelope: {
      profile: { protocolVersion: 'v', capabilities: {}, clientInfo: {} },
      logRank: undefined,
      progressToken: undefined,
    },
    owner: { id: 'ann' },
    template: 't',
    backends: new ModernScriptedBackends(),
    ...change,
  };
}

test('a key is the same for the same call, whatever else the request says', () => {
  const key = callKey(call());
  assert.is(callKey(call({ id: 'other' })), key);
  assert.is(
    callKey(call({}, { arguments: { y: [2], x: 1 }, name: 'a', _meta: { z: 1 }, requestState: 's' })),
    key,
  );
});

test('a key is another one for another owner, path, method, subject or argument', () => {
  const keys = [
    call(),
    call({ owner: { id: 'bob' } }),
    call({ template: 'u' }),
    call({ template: undefined }),
    call({ method: 'prompts/get' }),
    call({}, { name: 'b', arguments: { x: 1, y: [2] } }),
    call({}, { uri: 'a', arguments: { x: 1, y: [2] } }),
    call({}, { name: 'a', arguments: { x: 1, y: 2 } }),
    call({}, { name: 'a', arguments: { x: 1, y: ['2'] } }),
    call({}, { name: 'a' }),
  ].map(callKey);
  assert.is(new Set(keys).size, keys.length);
  assert.is(callKey(call({}, { name: 'a' })), callKey(call({}, { name: 'a', arguments: {} })));
});

test('names cannot be put together to look like others', () => {
  const keys = [
    pathKey('p', { owner: { id: 'a' }, template: 'b' }),
    pathKey('p', { owner: { id: 'a","b' }, template: '' }),
    pathKey('p', { owner: { id: 'a' }, template: undefined }),
    pathKey('p","a', { owner: { id: 'a' }, template: 'b' }),
    pathKey('p', { owner: { id: 'a' }, template: 'null' }),
  ];
  assert.is(new Set(keys).size, keys.length);
});

test('what is wrong with parameters is an answer', () => {
  assert.equal([invalidParams('m').status, invalidParams('m').error], [200, { code: -32602, message: 'm' }]);
  assert.equal(invalidParams('m', { a: 1 }).error.data, { a: 1 });
});

test.run();
