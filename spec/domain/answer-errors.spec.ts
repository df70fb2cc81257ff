// What a backend's JSON-RPC error means for a caller who does not speak JSON-RPC.

import * as assert from 'uvu/assert';
import {
  errorOfAnswer,
  invalidToolArguments,
  needsList,
  promptNotFound,
  resourceNotFound,
  toolExecutionFailed,
} from '../../src/domain/answer-errors.ts';
import type { ExchangeRequest } from '../../src/domain/exchange.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('errors of answers');
const CALL: ExchangeRequest = { method: 'tools/call', params: { name: 'add' } };
const READ: ExchangeRequest = { method: 'resources/read', params: { uri: 'a:b' } };
const PROMPT: ExchangeRequest = { method: 'prompts/get', params: { name: 'greet' } };
const LIST: ExchangeRequest = { method: 'tools/list' };
const refused = { code: -32602, message: 'a must be a number' };

for (const [request, code, expected, message] of [
  [CALL, -32602, 'INVALID_TOOL_ARGUMENTS', '"add" refused its arguments: no'],
  [CALL, -32603, 'TOOL_EXECUTION_FAILED', '"add" failed: no'],
  [CALL, -32601, 'TOOL_EXECUTION_FAILED', '"add" failed: no'],
  [CALL, -32002, 'TOOL_EXECUTION_FAILED', '"add" failed: no'],
  [READ, -32002, 'RESOURCE_NOT_FOUND', 'No resource "a:b".'],
  [READ, -32602, 'RESOURCE_NOT_FOUND', 'No resource "a:b": no.'],
  [READ, -32603, 'TOOL_EXECUTION_FAILED', '"resources/read" failed: no'],
  [PROMPT, -32602, 'PROMPT_NOT_FOUND', 'No prompt named "greet".'],
  [PROMPT, -32603, 'TOOL_EXECUTION_FAILED', '"prompts/get" failed: no'],
  [LIST, -32602, 'TOOL_EXECUTION_FAILED', '"tools/list" failed: no'],
] as const) {
  test(`makes ${expected} of ${code} to ${request.method}`, () => {
    const backendError = { code, message: 'no', data: { why: 'because' } };
    const error = errorOfAnswer(request, backendError);
    assert.equal([error.code, error.message], [expected, message]);
    assert.equal(error.facts.backendError, backendError);
    assert.is(error.delivered, 'yes');
    assert.is(error.facts.retryAfterSeconds, undefined);
  });
}

test('blames the arguments of a prompt that is listed', () => {
  const backendError = { code: -32602, message: 'who is required' };
  const error = errorOfAnswer(PROMPT, backendError, true);
  assert.equal([error.code, error.status, error.delivered], ['VALIDATION_ERROR', 422, 'yes']);
  assert.equal(error.facts.items, [
    { loc: ['body', 'arguments'], msg: 'who is required', type: 'value_error' },
  ]);
  assert.is(error.facts.backendError, backendError);
  assert.is(errorOfAnswer(PROMPT, { code: -32603, message: 'no' }, true).code, 'TOOL_EXECUTION_FAILED');
});

test('needs the list for nothing but -32602 to prompts/get', () => {
  const needed = [CALL, READ, PROMPT, LIST].map((request) =>
    needsList(request, { code: -32602, message: '' }),
  );
  assert.equal(needed, [false, false, true, false]);
  assert.is(needsList(PROMPT, { code: -32603, message: '' }), false);
});

test('does not stumble over a request without params', () => {
  const error = errorOfAnswer({ method: 'tools/call' }, { code: -32602, message: 'no' });
  assert.is(error.code, 'INVALID_TOOL_ARGUMENTS');
});

for (const [fact, error, expected] of [
  ['no resource', resourceNotFound('file:///a'), { code: 'RESOURCE_NOT_FOUND', status: 404 }],
  ['no prompt', promptNotFound('hello'), { code: 'PROMPT_NOT_FOUND', status: 404 }],
] as const) {
  test(`answers ${fact} with ${expected.status} ${expected.code}`, () => {
    const { code, status, delivered } = error;
    assert.equal({ code, status, delivered }, { ...expected, delivered: 'no' });
  });
}

test('keeps what the backend said, and that it was delivered', () => {
  for (const error of [
    resourceNotFound('file:///a', refused),
    promptNotFound('hello', refused),
    invalidToolArguments('add', refused),
    toolExecutionFailed('add', { backendError: refused }),
  ]) {
    assert.equal(error.facts, { delivered: 'yes', backendError: refused });
  }
});

test('answers refused arguments with 400 and the words of the backend', () => {
  const { status, code, message } = invalidToolArguments('add', refused);
  assert.equal(
    [status, code, message],
    [400, 'INVALID_TOOL_ARGUMENTS', '"add" refused its arguments: a must be a number'],
  );
});

test('tells a failed tool with an error from one with an error result', () => {
  const result = { isError: true, content: [] };
  assert.is(
    toolExecutionFailed('add', { backendError: refused }).message,
    '"add" failed: a must be a number',
  );
  const { status, delivered, message, facts } = toolExecutionFailed('add', { result });
  assert.equal([status, delivered, message], [500, 'yes', '"add" failed with an error result']);
  assert.equal(facts, { delivered: 'yes', result });
});

test.run();
