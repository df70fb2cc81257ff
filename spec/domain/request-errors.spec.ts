// What is told of a request that cannot be read, or that no route answers.

import * as assert from 'uvu/assert';
import {
  malformedJson,
  methodNotAllowed,
  notWritable,
  originNotAllowed,
  payloadTooLarge,
  routeNotFound,
  unsupportedMediaType,
  validationFailed,
} from '../../src/domain/error-catalogue.ts';
import type { GatewayError } from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('request errors');

/** Everything a reader of the error can see. */
function whole(error: GatewayError) {
  const { code, status, delivered, message, facts } = error;
  return { code, status, delivered, message, facts };
}

for (const [fact, error, expected] of [
  ['no route', routeNotFound('GET', '/nowhere'), { code: 'NOT_FOUND', status: 404 }],
  ['broken JSON', malformedJson('it ends early'), { code: 'MALFORMED_JSON', status: 400 }],
  ['a large body', payloadTooLarge(10), { code: 'PAYLOAD_TOO_LARGE', status: 413 }],
  ['a wrong type', unsupportedMediaType('text/plain'), { code: 'UNSUPPORTED_MEDIA_TYPE', status: 415 }],
  ['a denied origin', originNotAllowed('denied'), { code: 'ORIGIN_NOT_ALLOWED', status: 403 }],
] as const) {
  test(`answers ${fact} with ${expected.status} ${expected.code}`, () => {
    const { code, status, delivered } = error;
    assert.equal({ code, status, delivered }, { ...expected, delivered: 'no' });
  });
}

test('says which methods a path answers', () => {
  assert.equal(whole(methodNotAllowed('PUT', '/health', ['GET', 'HEAD'])), {
    code: 'METHOD_NOT_ALLOWED',
    status: 405,
    delivered: 'no',
    message: '/health does not answer PUT; it answers GET, HEAD.',
    facts: { allow: ['GET', 'HEAD'] },
  });
});

test('keeps the findings about bad input', () => {
  const items = [{ loc: ['body', 'weight'], msg: 'too small', type: 'greater_than_equal' }];
  assert.equal(whole(validationFailed(items)), {
    code: 'VALIDATION_ERROR',
    status: 422,
    delivered: 'no',
    message: 'The request is not valid: weight: too small.',
    facts: { items, plainMessage: 'The request is not valid.' },
  });
  const several = validationFailed([{ loc: ['body'], msg: 'no object', type: 'dict_type' }, ...items]);
  assert.is(several.message, 'The request is not valid: no object (and 1 more).');
  const options = validationFailed(
    [{ loc: ['options', 'graceMs'], msg: 'expected x', type: 'value_error' }],
    'This',
  );
  assert.is(options.message, 'This is not valid: graceMs: expected x.');
});

test('names the bound that a body was over', () => {
  assert.is(payloadTooLarge(4096).message, 'The request body is larger than 4096 bytes.');
});

test('has nobody else tried when a request cannot be written', () => {
  const cause = new TypeError('a BigInt');
  const { code, delivered, facts } = notWritable(cause);
  assert.equal([code, delivered, facts.cause], ['VALIDATION_ERROR', 'yes', cause]);
});

test.run();
