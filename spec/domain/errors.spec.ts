import * as assert from 'uvu/assert';
import {
  asGatewayError,
  databaseUnavailable,
  ERROR_STATUS,
  GatewayError,
  gatewayStarting,
  hasCode,
  internalError,
  shuttingDown,
} from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('errors');
const cause = new Error('the cause');
const full = new GatewayError('QUEUE_FULL', 'full');

test('has a status of failure for every code', () => {
  for (const [code, status] of Object.entries(ERROR_STATUS)) {
    assert.ok(status >= 400 && status <= 599, code);
  }
});

test('is an Error with a name, a code and the status of that code', () => {
  assert.instance(full, Error);
  assert.equal(
    [full.name, full.code, full.status, full.message],
    ['GatewayError', 'QUEUE_FULL', 429, 'full'],
  );
});

test('carries its cause, and no cause when there is none', () => {
  assert.is(new GatewayError('INTERNAL_ERROR', 'x', { cause }).cause, cause);
  assert.is(Object.hasOwn(new GatewayError('INTERNAL_ERROR', 'x'), 'cause'), false);
});

test('counts as not delivered before any backend was asked', () => {
  assert.is(full.delivered, 'no');
});

test('says when to try again where the gateway itself is not there yet, or any more', () => {
  assert.equal(
    [gatewayStarting(), shuttingDown(), databaseUnavailable(cause)].map(({ code, delivered, facts }) => [
      code,
      delivered,
      facts.retryAfterSeconds,
    ]),
    [
      ['NO_HEALTHY_INSTANCE', 'no', 1],
      ['SHUTTING_DOWN', 'no', 5],
      ['DATABASE_UNAVAILABLE', 'no', 5],
    ],
  );
});

test('does not invite to try again when a change may have happened', () => {
  const { delivered, facts } = databaseUnavailable(cause, 'unknown');
  assert.equal([delivered, facts], ['unknown', { cause, delivered: 'unknown' }]);
});

test('tells nothing of an internal error but keeps its cause', () => {
  const error = internalError(cause);
  assert.is(error.message, 'Something went wrong inside the gateway.');
  assert.is(error.cause, cause);
});

test('makes a GatewayError of anything thrown and leaves one that is one', () => {
  assert.is(asGatewayError(full), full);
  for (const thrown of [cause, 'text', undefined, null]) {
    const error = asGatewayError(thrown);
    assert.is(error.code, 'INTERNAL_ERROR');
    assert.is(error.cause, thrown === undefined ? undefined : thrown);
  }
});

test('tells an error by its code, and nothing else by something that looks like one', () => {
  const twin = Object.assign(new Error(full.message), { code: 'QUEUE_FULL' });
  assert.equal(
    [full, twin, cause, undefined, 'QUEUE_FULL'].map((thrown) => hasCode(thrown, 'QUEUE_FULL')),
    [true, false, false, false, false],
  );
  assert.is(hasCode(full, 'BACKEND_TIMEOUT'), false);
});

test.run();
