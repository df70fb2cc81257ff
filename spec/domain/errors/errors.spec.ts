// The errors: code, status, message and facts of each error; errors derived from others; and the mapping of a backend's
// JSON-RPC error for a caller that does not use JSON-RPC.

import * as assert from 'uvu/assert';
import { errorOfAnswer, toolExecutionFailed } from '../../../src/domain/calls/answer-errors.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import * as accountErrors from '../../../src/domain/errors/account-errors.ts';
import {
  backendTimeout,
  backendUnavailable,
  instanceElsewhere,
  noHealthyInstance,
  toolNotFound,
} from '../../../src/domain/errors/backend-errors.ts';
import {
  asGatewayError,
  GatewayError,
  hasCode,
  openingFailed,
  reasonOf,
  rpcCodeOf,
} from '../../../src/domain/errors/errors.ts';
import {
  databaseFull,
  databaseUnavailable,
  restOfChange,
} from '../../../src/domain/errors/gateway-errors.ts';
import { nodesNeedAllTemplates, nodeUnavailable } from '../../../src/domain/errors/node-errors.ts';
import { registryFull } from '../../../src/domain/errors/registry-errors.ts';
import { notWritable, tooMany, validationFailed } from '../../../src/domain/errors/request-errors.ts';
import * as sessionErrors from '../../../src/domain/errors/session-errors.ts';
import { closedEarly } from '../../../src/net/http1/response-parser.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the errors');
const cause = new Error('the cause');
const full = new GatewayError('QUEUE_FULL', 'full');
const LOST = { delivered: 'no', reason: 'it is gone' };
const again = (retryAfterSeconds: number) => ({ delivered: 'no', retryAfterSeconds });

/** Errors that no spec of HTTP covers: status, code, and `delivered` if it is not `no`; the facts; a part of the message. */
const ROWS: readonly (readonly [error: GatewayError, outcome: string, facts: object, message?: string])[] = [
  [
    accountErrors.accountsNeedAllTemplates(),
    '403 INSUFFICIENT_PERMISSIONS',
    { requiredPermissions: ['admin'] },
  ],
  [nodesNeedAllTemplates(), '403 INSUFFICIENT_PERMISSIONS', {}],
  [registryFull('instances', 2), '400 REGISTRY_FULL', {}, 'The registry is full (2 instances):'],
  [
    sessionErrors.sessionLost('it is gone'),
    '404 SESSION_NOT_FOUND',
    LOST,
    'The session ended: it is gone. Init',
  ],
  [
    sessionErrors.sessionLimit({ most: 10, isShare: false }),
    '503 SESSION_LIMIT',
    { retryAfterSeconds: 60 },
    'sessions.max)',
  ],
  [sessionErrors.sessionLimit({ most: 10, isShare: true }), '503 SESSION_LIMIT', {}, 'sessions.share)'],
  [sessionErrors.processLimit(64), '429 QUEUE_FULL', again(60), 'sessions.max_processes)'],
  [sessionErrors.dedicatedShareLimit(16), '429 QUEUE_FULL', again(5), 'sessions.share)'],
  [
    nodeUnavailable(undefined, 'it is away', 'no'),
    '503 NODE_UNAVAILABLE',
    { ...again(1), reason: 'it is away', plainMessage: 'The node that has the session is unavailable.' },
    'The node that has the session is unavailable: it is away.',
  ],
  [
    tooMany('open subscriptions', { most: 10, isShare: true }),
    '429 QUEUE_FULL',
    again(60),
    'This caller has too many open subscriptions (10).',
  ],
  [sessionErrors.tooManyAwaitingClient(1_000), '429 QUEUE_FULL unknown', { delivered: 'unknown' }],
];

test('gives every error its code, status, facts and message', () => {
  for (const [error, outcome, facts, message] of ROWS) {
    const { code, status, delivered } = error;
    assert.is(`${status} ${code}${delivered === 'no' ? '' : ` ${delivered}`}`, outcome);
    assert.equal(error.facts, facts, error.message);
    if (message !== undefined) assert.match(error.message, message);
  }
});

test('makes Errors with a name, the status of their code, and an optional cause', () => {
  assert.instance(full, Error);
  assert.equal([full.name, full.status, full.message], ['GatewayError', 429, 'full']);
  assert.is(new GatewayError('INTERNAL_ERROR', 'x', { cause }).cause, cause);
  assert.is(Object.hasOwn(full, 'cause'), false);
});

test('has stack frames, unless it is a failure of a backend: they take longer than its answer', () => {
  const frames = ({ stack = '' }: Error): number =>
    stack.split('\n').filter((line) => /^\s+at /.test(line)).length;
  const before = Error.stackTraceLimit;
  assert.ok(frames(new GatewayError('INTERNAL_ERROR', 'x')) > 0);
  assert.is(frames(backendUnavailable('connection refused', { delivered: 'unknown' })), 0);
  assert.is(frames(closedEarly()), 0);
  assert.is(Error.stackTraceLimit, before);
});

test('names the first validation issue and the number of further issues', () => {
  const items = [{ loc: ['body', 'weight'], msg: 'too small', type: 'greater_than_equal' }];
  const error = validationFailed(items);
  assert.equal([error.status, error.code, error.delivered], [422, 'VALIDATION_ERROR', 'no']);
  assert.is(error.message, 'The request is not valid: weight: too small.');
  assert.equal(error.facts, { items, plainMessage: 'The request is not valid.' });
  const several = validationFailed([{ loc: ['body'], msg: 'no object', type: 'dict_type' }, ...items]);
  assert.is(several.message, 'The request is not valid: no object (and 1 more).');
  const option = { loc: ['options', 'graceMs'], msg: 'expected x', type: 'value_error' };
  assert.is(validationFailed([option], 'This').message, 'This is not valid: graceMs: expected x.');
});

test('shortens a name of any length that its message repeats', () => {
  const long = 'x'.repeat(10_000);
  const request = { method: 'resources/read', params: { uri: long } } as ExchangeRequest;
  const answered = errorOfAnswer(request, { code: -32_002, message: 'no' });
  for (const { message } of [toolNotFound(long, 't'), toolExecutionFailed(long, {}), answered])
    assert.ok(message.length < 200, message.slice(0, 40));
});

test('marks a request that cannot be written as delivered, so that no other instance is tried', () => {
  const { code, delivered, facts } = notWritable(cause);
  assert.equal([code, delivered, facts.cause], ['VALIDATION_ERROR', 'yes', cause]);
});

test('has a Retry-After only when nothing was delivered', () => {
  const retries = [
    noHealthyInstance('weather'),
    backendUnavailable('connection refused', { delivered: 'no' }),
    backendTimeout(1_500, 'no'),
    backendUnavailable('exited with code 7', { delivered: 'unknown' }),
    backendUnavailable('sent no JSON', { delivered: 'yes' }),
  ].map(({ delivered, facts }) => `${delivered} ${facts.retryAfterSeconds}`);
  assert.equal(retries, ['no 2', 'no 1', 'no 1', 'unknown undefined', 'yes undefined']);
});

test('keeps the reason of an unavailable backend, and marks a timeout as suspicious', () => {
  const error = backendUnavailable('connection reset', { delivered: 'unknown', cause, health: 'suspicious' });
  assert.is(error.message, 'The backend is unavailable: connection reset.');
  const reason = 'connection reset';
  const plainMessage = 'The backend is unavailable.';
  assert.equal(error.facts, { delivered: 'unknown', cause, health: 'suspicious', reason, plainMessage });
  const late = backendTimeout(1_500);
  assert.equal([late.status, late.message], [503, 'The backend did not answer within 1.5 s.']);
  assert.equal(late.facts, {
    delivered: 'unknown',
    health: 'suspicious',
    reason: 'it did not answer within 1.5 s',
  });
  assert.is(backendTimeout(5_004).message, 'The backend did not answer within 5 s.', 'a measured time');
  assert.is(backendTimeout(75).message, 'The backend did not answer within 0.075 s.');
});

test('names why no instance is healthy, and why an instance cannot be used here', () => {
  const { message } = noHealthyInstance('files', 'a is starting; b: connection refused');
  assert.is(message, 'No instance of "files" is healthy right now: a is starting; b: connection refused.');
  assert.is(noHealthyInstance('files').message, 'No instance of "files" is healthy right now.');
  const elsewhere = instanceElsewhere('files-1', 'it runs on the node "b"');
  assert.equal([elsewhere.status, elsewhere.code], [503, 'NO_HEALTHY_INSTANCE']);
  assert.is(elsewhere.message, 'Instance "files-1" cannot be used on this node: it runs on the node "b".');
  const plainMessage = 'Instance "files-1" cannot be used on this node.';
  assert.equal(elsewhere.facts, { delivered: 'no', plainMessage });
});

test('wraps any thrown value in a GatewayError, and keeps a GatewayError', () => {
  assert.is(asGatewayError(full), full);
  for (const thrown of [cause, 'text', undefined, null]) {
    const error = asGatewayError(thrown);
    assert.is(error.code, 'INTERNAL_ERROR');
    assert.is(error.cause, thrown === undefined ? undefined : thrown);
  }
});

test('recognises an error by its code only if it is a GatewayError', () => {
  const twin = Object.assign(new Error(full.message), { code: 'QUEUE_FULL' });
  const found = [full, twin, cause, undefined, 'QUEUE_FULL'].map((thrown) => hasCode(thrown, 'QUEUE_FULL'));
  assert.equal([...found, hasCode(full, 'BACKEND_TIMEOUT')], [true, false, false, false, false, false]);
});

const refused = backendUnavailable('connection refused', {
  delivered: 'unknown',
  cause,
  health: 'unreachable',
});

test('marks a failed opening as not delivered, with the standard error of the program', () => {
  const { facts, message } = openingFailed(refused, ['no key']);
  assert.is(message, 'The backend is unavailable: connection refused.');
  assert.equal(facts, {
    ...again(1),
    cause,
    stderr: ['no key'],
    health: 'unreachable',
    reason: 'connection refused',
    plainMessage: 'The backend is unavailable.',
  });
  const plain = backendUnavailable('exited with code 1', { delivered: 'no' });
  assert.is(openingFailed(plain, []).cause, plain);
});

test('gives the reason of a failed backend, or else the message', () => {
  assert.equal([refused, noHealthyInstance('t'), cause, 'a text'].map(reasonOf), [
    'connection refused',
    'No instance of "t" is healthy right now.',
    'the cause',
    'it could not be opened',
  ]);
});

const CALL: ExchangeRequest = { method: 'tools/call', params: { name: 'add' } };
const READ: ExchangeRequest = { method: 'resources/read', params: { uri: 'a:b' } };
const PROMPT: ExchangeRequest = { method: 'prompts/get', params: { name: 'greet' } };
const LIST: ExchangeRequest = { method: 'tools/list' };

test('maps the error of a backend to the caller or to the execution by its code, and keeps it as backend_error', () => {
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

test('maps -32602 for a listed prompt to its arguments', () => {
  const backendError = { code: -32602, message: 'who is required' };
  const { code, status, delivered, facts } = errorOfAnswer(PROMPT, backendError, true);
  assert.equal([code, status, delivered], ['VALIDATION_ERROR', 422, 'yes']);
  assert.equal(facts.items, [{ loc: ['body', 'arguments'], msg: 'who is required', type: 'value_error' }]);
  assert.is(facts.backendError, backendError);
  assert.is(errorOfAnswer(PROMPT, { code: -32603, message: 'no' }, true).code, 'TOOL_EXECUTION_FAILED');
});

test('a code of another program is an internal error', () => {
  const error = new GatewayError(Object('toString'), 'x');
  assert.equal([error.status, rpcCodeOf(error)], [500, rpcCodeOf(new GatewayError('INTERNAL_ERROR', 'x'))]);
});

test('the rest of a change that a database refuses may have been made, and says why as the database does', async () => {
  for (const [failure, problem] of [
    [databaseUnavailable(undefined), 'The database does not answer.'],
    [databaseFull(undefined, 'no'), 'The database has no space left.'],
  ] as const) {
    const thrown = asGatewayError(await restOfChange(Promise.reject(failure)).catch((error) => error));
    assert.is(thrown.delivered, 'unknown');
    assert.ok(thrown.message.startsWith(`${problem} It is unknown whether`), thrown.message);
  }
  const other = new Error('another one');
  assert.is(await restOfChange(Promise.reject(other)).catch((error: unknown) => error), other);
});

test.run();
