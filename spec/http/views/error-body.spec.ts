import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import {
  backendTimeout,
  noHealthyInstance,
  toolExecutionFailed,
  validationFailed,
} from '../../../src/domain/errors.ts';
import { ErrorBody, errorBody } from '../../../src/http/views/error-body.ts';
import { suite } from '../../helpers/suite.ts';

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

test.run();
