import * as assert from 'uvu/assert';
import { classifyRequest, namesModern } from '../../src/protocol/endpoint.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('classify');

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const NEW = '2026-07-28';
const OLD = '2025-11-25';

const claiming = (version: unknown) => ({ _meta: { [VERSION]: version } });
const request = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const notification = (method: string, params?: object) => ({ jsonrpc: '2.0', method, params });

/** The era, or status and code of the refusal. */
function outcome(body: unknown, version?: string): string {
  try {
    return classifyRequest(JSON.parse(JSON.stringify(body)), { 'mcp-protocol-version': version }).era;
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    return `${thrown.status} ${thrown.error.code}`;
  }
}

const TABLE: readonly [body: unknown, header: string | undefined, expected: string][] = [
  // The body decides.
  [request('tools/list', claiming(NEW)), NEW, 'modern'],
  [request('tools/list', claiming(NEW)), undefined, 'modern'],
  [request('tools/list', claiming(NEW)), OLD, 'modern'],
  [request('tools/list', claiming('v999')), undefined, 'modern'],
  [request('tools/list', claiming(OLD)), undefined, 'modern'],
  [request('tools/list', claiming(7)), undefined, 'modern'],
  [notification('notifications/x', claiming(NEW)), undefined, 'modern'],
  // It says nothing: the header does.
  [request('tools/list'), NEW, 'modern'],
  [request('tools/list'), ` ${NEW} `, 'modern'],
  [request('tools/list', { _meta: {} }), '2027-01-01', 'modern'],
  [notification('notifications/cancelled'), NEW, 'modern'],
  // Nothing does.
  [request('tools/list'), undefined, 'legacy'],
  [request('tools/list', { _meta: { progressToken: 1 } }), OLD, 'legacy'],
  [request('tools/list'), 'v999', 'legacy'],
  [request('tools/list'), '2026-13', 'legacy'],
  [notification('notifications/initialized'), OLD, 'legacy'],
  [{ jsonrpc: '2.0', id: 1, result: {} }, undefined, 'legacy'],
  ['text', undefined, 'legacy'],
  [null, undefined, 'legacy'],
  [{}, OLD, 'legacy'],
  // The handshake.
  [request('initialize', { protocolVersion: OLD }), undefined, 'legacy'],
  [request('initialize', { protocolVersion: NEW }), OLD, 'legacy'],
  [request('initialize', claiming(OLD)), undefined, 'legacy'],
  [request('initialize', claiming(NEW)), NEW, 'modern'],
  [request('initialize', { protocolVersion: OLD }), NEW, '400 -32020'],
  // Arrays.
  [[], undefined, 'legacy'],
  [[request('ping'), request('tools/list')], undefined, 'legacy'],
  [[request('ping')], NEW, '400 -32600'],
  [[request('ping'), request('tools/list', claiming(NEW))], undefined, '400 -32600'],
  // What the modern era has no place for.
  [{ jsonrpc: '2.0', id: 1, result: {} }, NEW, '400 -32600'],
  [{ jsonrpc: '2.0', id: null, method: 'tools/list', params: claiming(NEW) }, NEW, '400 -32600'],
  [{ jsonrpc: '2.0', id: 1.5, method: 'tools/list', params: claiming(NEW) }, NEW, '400 -32600'],
  [{ jsonrpc: '2.0', id: {}, method: 'tools/list', params: claiming(NEW) }, NEW, '400 -32600'],
  [{ jsonrpc: '1.0', id: 1, method: 'tools/list', params: claiming(NEW) }, NEW, '400 -32600'],
  [{ jsonrpc: '2.0', id: 1, method: 7, params: claiming(NEW) }, NEW, '400 -32600'],
  [{ jsonrpc: '2.0', id: 1, method: 'tools/list', params: [] }, NEW, '400 -32600'],
  [{}, NEW, '400 -32600'],
  ['text', NEW, '400 -32600'],
];

test('sorts each POST by its body, then by its header', () => {
  for (const [body, header, expected] of TABLE) {
    assert.is(outcome(body, header), expected, `${JSON.stringify(body)} under ${header}`);
  }
});

test('hands on the message of a modern client as it is', () => {
  const body = request('tools/call', { ...claiming(NEW), name: 'add' });
  const { id, method, params } = body;
  assert.equal(classifyRequest(body, {}), {
    era: 'modern',
    message: { kind: 'request', id, method, params },
  });
});

test('knows modern revisions by their date', () => {
  assert.is(namesModern({ 'mcp-protocol-version': NEW }), true);
  assert.is(namesModern({ 'mcp-protocol-version': '2030-01-01' }), true);
  for (const other of [OLD, '', 'v999.0.0', '2026-07-27', undefined]) {
    assert.is(namesModern({ 'mcp-protocol-version': other }), false, other);
  }
});

test.run();
