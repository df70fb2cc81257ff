// Failures of an HTTP backend: their reason, and whether the request was delivered.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../../src/domain/errors/backend-errors.ts';
import { GatewayError } from '../../../../src/domain/errors/errors.ts';
import { InvalidResponse } from '../../../../src/net/http1/response-parser.ts';
import {
  answeredStatus,
  connectionFailed,
  mayBeStarting,
  sessionNotReplaced,
} from '../../../../src/transports/http/answers/http-failures.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('http failures');

test('a session that cannot be replaced leaves the call undelivered, and the instance suspected', () => {
  const cause = new Error('down');
  const thrown = backendUnavailable('gone', { delivered: 'unknown', cause });
  const error = sessionNotReplaced(thrown);
  assert.instance(error, GatewayError);
  assert.equal([error.delivered, error.facts.health, error.cause], ['no', 'suspicious', cause]);
});

function withCode(code: string): Error {
  return Object.assign(new Error('secret words of the system'), { code });
}

function summary({ code, message, facts }: GatewayError) {
  const { delivered, health } = facts;
  const reason = message.replace('The backend is unavailable: ', '').replace(/\.$/, '');
  assert.is(code, 'BACKEND_UNAVAILABLE');
  return [reason, delivered, ...(health === undefined ? [] : [health])];
}

test('failures before the request was written are undelivered, later ones unknown', () => {
  for (const code of ['ENOTFOUND', 'ETIMEDOUT', 'CERT_HAS_EXPIRED', 'EWHATEVER', '']) {
    assert.equal(summary(connectionFailed(withCode(code), false)).slice(1), ['no', 'suspicious']);
  }
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EWHATEVER', '']) {
    assert.equal(summary(connectionFailed(withCode(code), true)).slice(1), ['unknown', 'suspicious']);
  }
});

test('an answer that is not HTTP is named as such', () => {
  const invalid = connectionFailed(new InvalidResponse('a header is invalid'), true);
  assert.equal(summary(invalid), [
    'answered with invalid HTTP: a header is invalid',
    'unknown',
    'suspicious',
  ]);
});

test('names the cause of a failure, and never repeats the text of an error', () => {
  const found = summary(connectionFailed(withCode('ENOTFOUND'), false))[0];
  assert.is(found, 'the connection could not be made (ENOTFOUND)');
  assert.is(
    summary(connectionFailed(withCode('EODD'), true))[0],
    'the connection broke before the answer (EODD)',
  );
  const unparsed = Object.assign(new Error('secret'), { code: undefined });
  for (const error of [new Error('secret'), unparsed, withCode('')])
    assert.is(summary(connectionFailed(error, false))[0], 'the connection could not be made');
});

test('only a refused or broken connection looks like a program that is starting', () => {
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EPIPE']) {
    assert.ok(mayBeStarting(connectionFailed(withCode(code), code !== 'ECONNREFUSED')), code);
  }
  assert.not.ok(mayBeStarting(connectionFailed(withCode('ENOTFOUND'), false)));
  assert.not.ok(mayBeStarting(answeredStatus({ status: 503 })));
  assert.not.ok(mayBeStarting(new Error('else')));
});

test.run();
