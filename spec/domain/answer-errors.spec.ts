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

test('blames the caller where the code says so, else the execution, and keeps the words of the backend', () => {
  for (const [request, code, expected, message] of [
    [CALL, -32602, '400 INVALID_TOOL_ARGUMENTS', '"add" refused its arguments: no'],
    [CALL, -32603, '500 TOOL_EXECUTION_FAILED', '"add" failed: no'],
    [CALL, -32601, '500 TOOL_EXECUTION_FAILED', '"add" failed: no'],
    [CALL, -32002, '500 TOOL_EXECUTION_FAILED', '"add" failed: no'],
    [READ, -32002, '404 RESOURCE_NOT_FOUND', 'No resource "a:b".'],
    [READ, -32602, '404 RESOURCE_NOT_FOUND', 'No resource "a:b": no.'],
    [READ, -32603, '500 TOOL_EXECUTION_FAILED', '"resources/read" failed: no'],
    [PROMPT, -32602, '404 PROMPT_NOT_FOUND', 'No prompt named "greet".'],
    [PROMPT, -32603, '500 TOOL_EXECUTION_FAILED', '"prompts/get" failed: no'],
    [LIST, -32602, '500 TOOL_EXECUTION_FAILED', '"tools/list" failed: no'],
    [{ method: 'tools/call' }, -32602, '400 INVALID_TOOL_ARGUMENTS', 'refused its arguments'],
  ] as const) {
    const backendError = { code, message: 'no', data: { why: 'because' } };
    const error = errorOfAnswer(request, backendError);
    assert.is(`${error.status} ${error.code}`, expected);
    assert.match(error.message, message);
    assert.equal(error.facts, { delivered: 'yes', backendError });
  }
});

test('blames the arguments of a prompt that is listed', () => {
  const backendError = { code: -32602, message: 'who is required' };
  const { code, status, delivered, facts } = errorOfAnswer(PROMPT, backendError, true);
  assert.equal([code, status, delivered], ['VALIDATION_ERROR', 422, 'yes']);
  assert.equal(facts.items, [{ loc: ['body', 'arguments'], msg: 'who is required', type: 'value_error' }]);
  assert.is(facts.backendError, backendError);
  assert.is(errorOfAnswer(PROMPT, { code: -32603, message: 'no' }, true).code, 'TOOL_EXECUTION_FAILED');
});

test('needs the list for nothing but -32602 to prompts/get', () => {
  const needed = (code: number) =>
    [CALL, READ, PROMPT, LIST].map((request) => needsList(request, { code, message: '' }));
  assert.equal([needed(-32602), needed(-32603)], [[false, false, true, false], Array(4).fill(false)]);
});

test('was not delivered where no backend was asked, and was where one answered', () => {
  for (const [error, expected] of [
    [resourceNotFound('file:///a'), '404 RESOURCE_NOT_FOUND no'],
    [promptNotFound('hello'), '404 PROMPT_NOT_FOUND no'],
    [invalidToolArguments('add', { code: -32602, message: 'no' }), '400 INVALID_TOOL_ARGUMENTS yes'],
  ] as const) {
    assert.is(`${error.status} ${error.code} ${error.delivered}`, expected);
  }
});

test('tells a failed tool with an error result from one with an error', () => {
  const result = { isError: true, content: [] };
  const { status, message, facts } = toolExecutionFailed('add', { result });
  assert.equal([status, message], [500, '"add" failed with an error result']);
  assert.equal(facts, { delivered: 'yes', result });
});

test.run();
