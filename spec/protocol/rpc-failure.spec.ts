// How failures of the gateway look to MCP clients: code, status, data, and nothing of how instances are run.

import * as assert from 'uvu/assert';
import {
  backendTimeout,
  backendUnavailable,
  rateLimitExceeded,
  sessionNotFound,
  validationFailed,
} from '../../src/domain/error-catalogue.ts';
import { ERROR_STATUS, type ErrorCode, GatewayError } from '../../src/domain/errors.ts';
import { failureOf, faultOf, RpcFailure, refused } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('rpc failure');

test('no code of ours is one that others may take for theirs', () => {
  const known = [-32700, -32602, -32603, -32000, -32001];
  for (const code of Object.keys(ERROR_STATUS) as ErrorCode[]) {
    const failure = failureOf(new GatewayError(code, 'x'));
    assert.is(failure.status, ERROR_STATUS[code]);
    const { code: rpcCode } = failure.error;
    assert.ok(known.includes(rpcCode) || rpcCode < -32768 || rpcCode > -32000, `${code} is ${rpcCode}`);
  }
});

test('what is thrown becomes an error with its reason, and keeps the id', () => {
  const thrown = new GatewayError('BACKEND_TIMEOUT', 'Too slow.', { instanceId: 'a', delivered: 'unknown' });
  const { status, error, id, headers } = failureOf(thrown, 'x');
  assert.equal([status, id, headers], [503, 'x', []]);
  assert.equal(error, {
    code: 503,
    message: 'Too slow.',
    data: { error_code: 'BACKEND_TIMEOUT', instance_id: 'a', delivered: 'unknown' },
  });
});

test('a retry is offered in a header only when nothing can have happened', () => {
  const safe = failureOf(backendUnavailable('refused', { delivered: 'no' }));
  assert.equal([safe.headers, Object(safe.error.data).retry_after_seconds], [['Retry-After', '1'], 1]);
  assert.equal(failureOf(backendTimeout(1000)).headers, []);
  assert.is(failureOf(rateLimitExceeded(1000, 30)).headers[0], 'Retry-After');
});

test('nothing is told of how instances are run', () => {
  const stderr = ['secret'];
  const body = failureOf(backendUnavailable('cannot read /etc/secret', { delivered: 'no', stderr })).body;
  assert.not(body.includes('secret'));
  assert.not(failureOf(new Error('password=secret')).body.includes('secret'));
});

test('what is our own fault is known by its cause', () => {
  const bug = new Error('password=secret');
  assert.is(faultOf(failureOf(bug))?.cause, bug);
  assert.is(faultOf(failureOf(failureOf(bug), 1))?.cause, bug);
  assert.is(faultOf(failureOf(backendTimeout(1000))), undefined);
  assert.is(faultOf(refused(400, 'no')), undefined);
});

test('reports issues of the input', () => {
  const { error } = failureOf(validationFailed([{ loc: ['body'], msg: 'Field required', type: 'missing' }]));
  assert.equal([error.code, error.message], [-32602, 'The request is not valid. Field required']);
});

test("a backend's own error is passed on", () => {
  const backendError = { code: -32042, message: 'go there', data: { url: 'u' } };
  assert.is(failureOf(new GatewayError('TOOL_EXECUTION_FAILED', 'x', { backendError })).error, backendError);
});

test('a failure stays one, and only lacks its id', () => {
  const failure = refused(406, 'no');
  assert.is(failureOf(failure), failure);
  const known = failureOf(failure, 0);
  assert.equal([known.id, known.status, known.error], [0, 406, { code: -32000, message: 'no' }]);
  assert.is(failureOf(known, 1), known);
  assert.ok(failureOf(sessionNotFound()) instanceof RpcFailure);
});

test('its body is a message', () => {
  const { body } = new RpcFailure(400, { code: 1, message: 'm' }, 'a');
  assert.equal(JSON.parse(body), { jsonrpc: '2.0', id: 'a', error: { code: 1, message: 'm' } });
});

test.run();
