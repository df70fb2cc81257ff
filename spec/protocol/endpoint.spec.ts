// How requests are classified by protocol era, and which ones are refused before that.

import * as assert from 'uvu/assert';
import { readModernMessage } from '../../src/protocol/endpoint.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';
import { VERSION } from './modern/modern-harness.ts';

const test = suite('endpoint');

const OLD = '2025-11-25';

const CLAIM = 'io.modelcontextprotocol/protocolVersion';

const claiming = (version: unknown) => ({ _meta: { [CLAIM]: version } });
const request = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const notification = (method: string, params?: object) => ({ jsonrpc: '2.0', method, params });

/** The era, or status and code of the refusal. */
function eraOf(body: unknown, version?: string): string {
  try {
    const message = readModernMessage(JSON.parse(JSON.stringify(body)), { 'mcp-protocol-version': version });
    return message === undefined ? 'legacy' : 'modern';
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
  // The body names no revision: the header decides.
  [request('tools/list'), VERSION, 'modern'],
  [request('tools/list', { _meta: {} }), '2027-01-01', 'modern'],
  [notification('notifications/cancelled'), VERSION, 'modern'],
  // Neither names a modern revision.
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
  // Messages that the modern era does not have.
  [{ jsonrpc: '2.0', id: 1, result: {} }, VERSION, '400 -32600'],
  [{ jsonrpc: '2.0', id: null, method: 'tools/list', params: claiming(VERSION) }, VERSION, '400 -32600'],
  [{ jsonrpc: '1.0', id: 1, method: 'tools/list', params: claiming(VERSION) }, VERSION, '400 -32600'],
  [{ jsonrpc: '2.0', id: 1, method: 'tools/list', params: [] }, VERSION, '400 -32600'],
  [{}, VERSION, '400 -32600'],
  ['text', VERSION, '400 -32600'],
];

test('classifies each POST by its body, then by its header', () => {
  for (const [body, header, expected] of TABLE) {
    assert.is(eraOf(body, header), expected, `${JSON.stringify(body)} under ${header}`);
  }
});

test.run();
