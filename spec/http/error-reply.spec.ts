import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal, type Scope } from '../../src/domain/account.ts';
import { toolExecutionFailed } from '../../src/domain/answer-errors.ts';
import {
  backendTimeout,
  backendUnavailable,
  insufficientPermissions,
  noHealthyInstance,
  validationFailed,
} from '../../src/domain/error-catalogue.ts';
import { atInstance, openingFailed } from '../../src/domain/errors.ts';
import { ErrorBody, errorBody } from '../../src/http/error-reply.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the error body');
const isErrorBody = Compile(ErrorBody);

test('has detail, code and request id, and nothing else when there is nothing else', () => {
  assert.equal(errorBody(noHealthyInstance('demo'), 'r1'), {
    detail: 'No instance of "demo" is healthy right now.',
    error_code: 'NO_HEALTHY_INSTANCE',
    request_id: 'r1',
  });
});

test('fits its schema with every extra', () => {
  for (const error of [
    validationFailed([{ loc: ['body', 'a', 0], msg: 'Field required', type: 'missing' }]),
    backendTimeout(1_000),
    toolExecutionFailed('t', { backendError: { code: -1, message: 'm' } }),
    toolExecutionFailed('t', { result: { isError: true } }),
  ]) {
    assert.ok(isErrorBody.Check(errorBody(error, 'r1')), error.code);
  }
});

test('says "unknown" only of a call that may have happened', () => {
  assert.is(errorBody(backendTimeout(1_000, 'unknown'), 'r1').delivered, 'unknown');
  assert.is(errorBody(backendTimeout(1_000, 'no'), 'r1').delivered, undefined);
});

test('names the permissions that would do', () => {
  const body = errorBody(insufficientPermissions(['gateway:read', 'tools:call']), 'r1');
  assert.equal(body, {
    detail: 'This needs the permission "gateway:read" or "tools:call".',
    error_code: 'INSUFFICIENT_PERMISSIONS',
    request_id: 'r1',
    required_permissions: ['gateway:read', 'tools:call'],
  });
  assert.ok(isErrorBody.Check(body));
});

test('names no paths of this machine to those who may not see how instances are run', () => {
  const path = 'there is no program "/srv/private/serve"';
  const reader: Principal = { ...ANONYMOUS, scopes: new Set<Scope>(['gateway:read', 'tools:call']) };
  const writer: Principal = { ...ANONYMOUS, scopes: new Set<Scope>(['gateway:write']) };
  for (const [error, plain] of [
    [noHealthyInstance('demo', path), 'No instance of "demo" is healthy right now.'],
    [backendUnavailable(path, { delivered: 'no' }), 'The backend is unavailable.'],
    [atInstance(backendUnavailable(path, { delivered: 'no' }), 'one'), 'The backend is unavailable.'],
    [openingFailed(backendUnavailable(path, { delivered: 'no' }), [path]), 'The backend is unavailable.'],
  ] as const) {
    assert.is(errorBody(error, 'r1', reader).detail, plain);
    assert.is(errorBody(error, 'r1').detail, plain);
    assert.match(String(errorBody(error, 'r1', writer).detail), path);
  }
});

test.run();
