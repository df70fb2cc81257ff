// How requests are classified by protocol era, and which ones are refused before that.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json.ts';
import { classifyRequest } from '../../src/protocol/endpoint.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';
import { headersFor, KEY, modernHarness, outcomeOf, VERSION } from './modern/modern-harness.ts';
import { RecordedReply } from './recorded-reply.ts';

const test = suite('endpoint');

const types = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const OLD = '2025-11-25';

/** What a GET or a DELETE is answered. */
async function without(method: 'GET' | 'DELETE', headers: Record<string, string>): Promise<RecordedReply> {
  const reply = new RecordedReply();
  await modernHarness().handle({ method, headers: { accept: 'text/event-stream', ...headers } }, reply);
  return reply;
}

test('modern clients may only POST', async () => {
  for (const method of ['GET', 'DELETE'] as const) {
    const reply = await without(method, { 'mcp-protocol-version': VERSION });
    assert.equal([outcomeOf(reply), reply.headers], ['405 -32000', ['Allow', 'POST']]);
  }
});

test('every other GET and DELETE is of the legacy era', async () => {
  for (const method of ['GET', 'DELETE'] as const) {
    assert.is(outcomeOf(await without(method, {})), '400 -32000');
    assert.is(outcomeOf(await without(method, { 'mcp-protocol-version': OLD })), '400 -32000');
    assert.is(outcomeOf(await without(method, { 'mcp-session-id': 'gone' })), '404 -32001');
    const both = { 'mcp-session-id': 'gone', 'mcp-protocol-version': VERSION };
    assert.is(outcomeOf(await without(method, both)), '404 -32001');
  }
});

test('each POST is classified by itself, in any order', async () => {
  const { post, send, backends } = modernHarness();
  const legacy = (params?: JsonObject) => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', params });
  const claim = { _meta: { [KEY.version]: VERSION, [KEY.capabilities]: {} } };
  for (let round = 0; round < 2; round += 1) {
    assert.is(outcomeOf(await post(legacy(), types)), '400 -32000');
    assert.is(outcomeOf(await post(legacy(), { ...types, 'mcp-session-id': 'gone' })), '404 -32001');
    const reply = await send('tools/list');
    backends.last.result({ tools: [], resultType: 'complete' });
    assert.is(outcomeOf(reply), '200');
    assert.is(outcomeOf(await post(legacy(), headersFor('tools/list'))), '400 -32602');
    assert.is(outcomeOf(await post(legacy(claim), types)), '400 -32020');
  }
});

test('an invalid body is refused in both eras alike', async () => {
  const { post } = modernHarness();
  for (const headers of [types, headersFor('tools/list'), { ...types, 'mcp-session-id': 'gone' }]) {
    assert.is(outcomeOf(await post('{', headers)), '400 -32700');
    assert.is(outcomeOf(await post('['.repeat(500), headers)), '400 -32600');
    assert.is(outcomeOf(await post({}, { ...headers, accept: 'application/json' })), '406 -32000');
    assert.is(outcomeOf(await post({}, { ...headers, 'content-type': 'text/plain' })), '415 -32000');
  }
});

test('an error of the fault listener does not affect the answer', async () => {
  const harness = modernHarness();
  Object.assign(harness.faults, {
    push: () => {
      throw new Error('the log is full');
    },
  });
  const reply = await harness.send('tools/list');
  harness.backends.last.fail(new Error('a fault of ours'));
  assert.is(outcomeOf(reply), '500 -32603');
});

const CLAIM = 'io.modelcontextprotocol/protocolVersion';

const claiming = (version: unknown) => ({ _meta: { [CLAIM]: version } });
const request = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const notification = (method: string, params?: object) => ({ jsonrpc: '2.0', method, params });

/** The era, or status and code of the refusal. */
function eraOf(body: unknown, version?: string): string {
  try {
    return classifyRequest(JSON.parse(JSON.stringify(body)), { 'mcp-protocol-version': version }).era;
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    return `${thrown.status} ${thrown.error.code}`;
  }
}

const TABLE: readonly [body: unknown, header: string | undefined, expected: string][] = [
  // The body decides.
  [request('tools/list', claiming(VERSION)), VERSION, 'modern'],
  [request('tools/list', claiming(VERSION)), undefined, 'modern'],
  [request('tools/list', claiming(VERSION)), OLD, 'modern'],
  [request('tools/list', claiming('v999')), undefined, 'modern'],
  [request('tools/list', claiming(OLD)), undefined, 'modern'],
  [request('tools/list', claiming(7)), undefined, 'modern'],
  [notification('notifications/x', claiming(VERSION)), undefined, 'modern'],
  // It says nothing: the header does.
  [request('tools/list'), VERSION, 'modern'],
  [request('tools/list'), ` ${VERSION} `, 'modern'],
  [request('tools/list', { _meta: {} }), '2027-01-01', 'modern'],
  [notification('notifications/cancelled'), VERSION, 'modern'],
  // Nothing does.
  [request('tools/list'), undefined, 'legacy'],
  [request('tools/list', { _meta: { progressToken: 1 } }), OLD, 'legacy'],
  [request('tools/list'), 'v999', 'legacy'],
  [request('tools/list'), '', 'legacy'],
  [request('tools/list'), '2026-13', 'legacy'],
  [request('tools/list'), '2026-07-27', 'legacy'],
  [notification('notifications/initialized'), OLD, 'legacy'],
  [{ jsonrpc: '2.0', id: 1, result: {} }, undefined, 'legacy'],
  ['text', undefined, 'legacy'],
  [null, undefined, 'legacy'],
  [{}, OLD, 'legacy'],
  // The handshake.
  [request('initialize', { protocolVersion: OLD }), undefined, 'legacy'],
  [request('initialize', { protocolVersion: VERSION }), OLD, 'legacy'],
  [request('initialize', claiming(OLD)), undefined, 'legacy'],
  [request('initialize', claiming(VERSION)), VERSION, 'modern'],
  [request('initialize', { protocolVersion: OLD }), VERSION, '400 -32020'],
  // Arrays.
  [[], undefined, 'legacy'],
  [[request('ping'), request('tools/list')], undefined, 'legacy'],
  [[request('ping')], VERSION, '400 -32600'],
  [[request('ping'), request('tools/list', claiming(VERSION))], undefined, '400 -32600'],
  // What the modern era has no place for.
  [{ jsonrpc: '2.0', id: 1, result: {} }, VERSION, '400 -32600'],
  [{ jsonrpc: '2.0', id: null, method: 'tools/list', params: claiming(VERSION) }, VERSION, '400 -32600'],
  [{ jsonrpc: '1.0', id: 1, method: 'tools/list', params: claiming(VERSION) }, VERSION, '400 -32600'],
  [{ jsonrpc: '2.0', id: 1, method: 'tools/list', params: [] }, VERSION, '400 -32600'],
  [{}, VERSION, '400 -32600'],
  ['text', VERSION, '400 -32600'],
];

test('sorts each POST by its body, then by its header', () => {
  for (const [body, header, expected] of TABLE) {
    assert.is(eraOf(body, header), expected, `${JSON.stringify(body)} under ${header}`);
  }
});

test.run();
