// What refusals mean: an answer, one for want of a header, or nothing that is certain.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { JsonRpcId } from '../../../src/domain/jsonrpc.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import type { RefusedEnding } from '../../../src/transports/http/http-answer.ts';
import { callRefusalOf, sessionNotReopened } from '../../../src/transports/http/http-call.ts';
import { TOO_LARGE } from '../../../src/transports/http/tool-headers.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('http refusal');

const MODERN: Peer = {
  era: 'modern',
  protocolVersion: '2026-07-28',
  serverName: 'x',
  serverVersion: '1',
  capabilities: {},
  greeting: {},
};
const LEGACY: Peer = { ...MODERN, era: 'legacy' };
const CALL = { id: 7, peer: MODERN, hasParamHeaders: false };

function refused(status: number, code?: number, id: JsonRpcId | null = 7): RefusedEnding {
  const error =
    code === undefined ? undefined : { kind: 'error' as const, id, error: { code, message: 'x' } };
  return { kind: 'refused', status, error };
}

/** What it means, in words: the answer's code, or whether the request was delivered. */
function meaning(one: RefusedEnding, call: Partial<typeof CALL> = {}): string {
  const refusal = callRefusalOf(one, { ...CALL, ...call });
  return refusal.kind === 'failure' ? refusal.failure.delivered : `${refusal.kind} ${refusal.error.code}`;
}

test('an error of the server is its answer, but for a status that a proxy makes', () => {
  assert.is(meaning(refused(400, -32602)), 'answer -32602');
  assert.is(meaning(refused(500, -32603)), 'answer -32603');
  for (const status of [502, 503, 504]) assert.is(meaning(refused(status, -32603)), 'unknown');
});

test('an error about another request, or none, is no answer', () => {
  assert.is(meaning(refused(400)), 'no');
  assert.is(meaning(refused(400, -32602, 8)), 'no');
  assert.is(meaning(refused(400, -32602, null)), 'no');
});

test('a missing header is one only with status 400, in the modern era', () => {
  assert.is(meaning(refused(400, -32020)), 'header -32020');
  for (const status of [401, 404, 422, 500]) assert.is(meaning(refused(status, -32020)), 'answer -32020');
  assert.is(meaning(refused(400, -32020), { peer: LEGACY }), 'answer -32020');
});

test('a missing header may be missed without reading the body, so the id may be missing, too', () => {
  assert.is(meaning(refused(400, -32020, null)), 'header -32020');
  assert.is(meaning(refused(400, -32020, 8)), 'no');
  assert.is(meaning(refused(404, -32020, null)), 'no');
  assert.is(meaning(refused(400, -32020, null), { peer: LEGACY }), 'no');
});

test('headers that are too large are an answer when arguments were among them', () => {
  const refusal = callRefusalOf(refused(431), { ...CALL, hasParamHeaders: true });
  assert.equal(refusal, { kind: 'answer', error: TOO_LARGE });
  assert.is(meaning(refused(431)), 'no');
});

test('a session that cannot be opened anew leaves the call undelivered, and the instance in doubt', () => {
  const cause = new Error('down');
  const thrown = backendUnavailable('gone', { delivered: 'unknown', cause });
  const error = sessionNotReopened(thrown);
  assert.instance(error, GatewayError);
  assert.equal([error.delivered, error.facts.suspicious, error.cause], ['no', true, cause]);
});

test.run();
