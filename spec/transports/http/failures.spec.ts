// Failures and refusals of an HTTP backend: whether the request was delivered, and whether there is an answer.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { JsonRpcId } from '../../../src/domain/mcp/jsonrpc.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { InvalidResponse } from '../../../src/net/http1/response-parser.ts';
import type { RefusedEnding } from '../../../src/transports/http/answer-ending.ts';
import {
  answeredStatus,
  connectionFailed,
  mayBeStarting,
  sessionNotReplaced,
} from '../../../src/transports/http/failures.ts';
import { callRefusalOf } from '../../../src/transports/http/http-call.ts';
import { HANDSHAKE, MODERN_HANDSHAKE } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('http failures');

function refused(status: number, code?: number, id: JsonRpcId | null = 7): RefusedEnding {
  const error =
    code === undefined ? undefined : { kind: 'error' as const, id, error: { code, message: 'x' } };
  return { kind: 'refused', status, error };
}

/** What it means, in words: the answer's code, or whether the request was delivered. */
function meaning(one: RefusedEnding, handshake: Handshake): string {
  const refusal = callRefusalOf(one, 7, handshake);
  return refusal instanceof GatewayError ? refusal.delivered : `answer ${refusal.code}`;
}

type Row = readonly [name: string, refusal: RefusedEnding, expected: string, handshake?: Handshake];

const REFUSALS: readonly Row[] = [
  ['an error with 400 is the answer', refused(400, -32602), 'answer -32602'],
  ['an error with 500 is the answer', refused(500, -32603), 'answer -32603'],
  ['an error with 503 may come from a proxy', refused(503, -32603), 'unknown'],
  ['without an error there is no answer', refused(400), 'no'],
  ['an error about another request is not an answer', refused(400, -32602, 8), 'no'],
  ['an error without an id is not an answer', refused(400, -32602, null), 'no'],
  ['-32020 without an id is a missing header', refused(400, -32020, null), 'answer -32020'],
  ['-32020 with 404 and no id is not an answer', refused(404, -32020, null), 'no'],
  ['-32020 in the legacy era without an id is not an answer', refused(400, -32020, null), 'no', HANDSHAKE],
];

for (const [name, refusal, expected, handshake = MODERN_HANDSHAKE] of REFUSALS)
  test(`what a refusal means: ${name}`, () => assert.is(meaning(refusal, handshake), expected));

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
