// What each failure of the way is called, whether the request can have arrived, and whether to doubt the instance.

import * as assert from 'uvu/assert';
import type { GatewayError } from '../../../src/domain/errors.ts';
import {
  answeredStatus,
  answerMissing,
  answerTooLarge,
  connectionClosed,
  connectionFailed,
  mayBeStarting,
} from '../../../src/transports/http/http-failures.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('http failures');

function withCode(code: string): Error {
  return Object.assign(new Error('secret words of the system'), { code });
}

function summary({ code, message, facts }: GatewayError) {
  const { delivered, suspicious = false, unreachable = false } = facts;
  const reason = message.replace('The backend is unavailable: ', '').replace(/\.$/, '');
  assert.is(code, 'BACKEND_UNAVAILABLE');
  return [reason, delivered, ...(suspicious ? ['suspicious'] : []), ...(unreachable ? ['unreachable'] : [])];
}

test('failures before the request was written are undelivered, later ones unknown', () => {
  for (const code of ['ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT', 'CERT_HAS_EXPIRED', 'EWHATEVER', '']) {
    assert.equal(summary(connectionFailed(withCode(code), false)).slice(1), ['no', 'suspicious']);
  }
  for (const code of [
    'ECONNREFUSED',
    'ECONNRESET',
    'UND_ERR_SOCKET',
    'UND_ERR_BODY_TIMEOUT',
    'EWHATEVER',
    '',
  ]) {
    assert.equal(summary(connectionFailed(withCode(code), true)).slice(1), ['unknown', 'suspicious']);
  }
});

test('names the fact and never repeats the text of an error', () => {
  assert.is(summary(connectionFailed(withCode('ENOTFOUND'), false))[0], 'its host name is not known');
  assert.is(
    summary(connectionFailed(withCode('ERR_TLS_CERT_ALTNAME_INVALID'), false))[0],
    'the TLS handshake failed (ERR_TLS_CERT_ALTNAME_INVALID)',
  );
  assert.is(
    summary(connectionFailed(withCode('EODD'), true))[0],
    'the connection broke before the answer (EODD)',
  );
  assert.is(summary(connectionFailed(new Error('secret'), false))[0], 'the connection could not be made');
});

test('what came instead of an answer leaves everything open', () => {
  assert.equal(summary(answerMissing('answered nonsense')), ['answered nonsense', 'unknown', 'suspicious']);
  assert.equal(summary(answerTooLarge()).slice(1), ['unknown']);
  assert.equal(summary(connectionClosed('closed by the gateway', true)), [
    'closed by the gateway',
    'unknown',
  ]);
  assert.equal(summary(connectionClosed('closed by the gateway', false)), ['closed by the gateway', 'no']);
});

test('only a refused or broken connection looks like a program that is starting', () => {
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET']) {
    assert.ok(mayBeStarting(connectionFailed(withCode(code), code !== 'ECONNREFUSED')), code);
  }
  assert.not.ok(mayBeStarting(connectionFailed(withCode('ENOTFOUND'), false)));
  assert.not.ok(mayBeStarting(answeredStatus(503)));
  assert.not.ok(mayBeStarting(new Error('else')));
});

test.run();
