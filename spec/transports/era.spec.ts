// What a request wears in each era: `_meta` inside, headers outside.

import * as assert from 'uvu/assert';
import { eraHeaders, withEraMetadata } from '../../src/transports/handshake.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('era');

const client = { name: 'stagedoor', version: '1.2.3' };
const modern = { era: 'modern', protocolVersion: '2026-07-28' } as const;
const legacy = { era: 'legacy', protocolVersion: '2025-11-25' } as const;
const bare = { era: 'bare', protocolVersion: '' } as const;
const ours = {
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': client,
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
};

test('gives a modern request its revision, its client and no capabilities', () => {
  const request = { method: 'tools/call', params: { name: 'echo' } };
  assert.equal(withEraMetadata(request, modern, client), {
    method: 'tools/call',
    params: { name: 'echo', _meta: ours },
  });
  assert.equal(withEraMetadata({ method: 'tools/list' }, modern, client), {
    method: 'tools/list',
    params: { _meta: ours },
  });
});

test('keeps what the caller put into _meta, except the revision', () => {
  const _meta = {
    traceparent: '00-1-2-03',
    progressToken: 7,
    'io.modelcontextprotocol/clientCapabilities': { sampling: {} },
    'io.modelcontextprotocol/protocolVersion': '1999-01-01',
  };
  const dressed = withEraMetadata({ method: 'tools/list', params: { _meta } }, modern, client);
  assert.equal(dressed.params?._meta, {
    ...ours,
    traceparent: '00-1-2-03',
    progressToken: 7,
    'io.modelcontextprotocol/clientCapabilities': { sampling: {} },
  });
});

test('returns legacy and bare requests as they are', () => {
  const request = { method: 'tools/list', params: {} };
  assert.is(withEraMetadata(request, legacy, client), request);
  assert.is(withEraMetadata(request, bare, client), request);
});

test('does not touch the request it was given', () => {
  const request = { method: 'tools/list', params: { _meta: { a: 1 } } };
  withEraMetadata(request, modern, client);
  assert.equal(request, { method: 'tools/list', params: { _meta: { a: 1 } } });
});

test('mirrors method and name of a modern request in its headers', () => {
  const version = { 'mcp-protocol-version': '2026-07-28' };
  const headers = (method: string, params: Record<string, string>) => eraHeaders({ method, params }, modern);
  assert.equal(headers('tools/list', {}), { ...version, 'mcp-method': 'tools/list' });
  assert.equal(headers('tools/call', { name: 'echo' }), {
    ...version,
    'mcp-method': 'tools/call',
    'mcp-name': 'echo',
  });
  assert.is(headers('prompts/get', { name: 'greet me' })['mcp-name'], 'greet me');
  assert.is(headers('resources/read', { uri: 'file:///a%20b' })['mcp-name'], 'file:///a%20b');
});

test('adds the mirrored parameters of the caller in the modern era, and no other header of his', () => {
  const headers = {
    'mcp-param-region': 'eu',
    'MCP-Param-A': 'b',
    cookie: 'x',
    'mcp-method': 'y',
    'mcp-name': 'z',
  };
  const request = { method: 'tools/call', params: { name: 'echo' }, headers };
  assert.equal(eraHeaders(withEraMetadata(request, modern, client), modern), {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'echo',
    'mcp-param-region': 'eu',
    'MCP-Param-A': 'b',
  });
  assert.equal(eraHeaders(request, legacy), { 'mcp-protocol-version': '2025-11-25' });
});

test('encodes a name that is not plain ASCII, or could be taken for an encoded one', () => {
  const nameOf = (name: string) =>
    eraHeaders({ method: 'tools/call', params: { name } }, modern)['mcp-name'] ?? '';
  const encoded = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;
  for (const name of ['Übung', '日本', ' padded', 'padded ', 'two\nlines', 'nul\0', '', '=?base64?YQ==?=']) {
    assert.is(nameOf(name), encoded(name), JSON.stringify(name));
  }
  assert.is(nameOf('=?base64?'), '=?base64?');
});

test('names the revision to legacy servers after the handshake, and nothing to bare ones', () => {
  assert.equal(eraHeaders({ method: 'tools/list' }, legacy), { 'mcp-protocol-version': '2025-11-25' });
  assert.equal(eraHeaders({ method: 'initialize' }, { era: 'legacy', protocolVersion: '' }), {});
  assert.equal(eraHeaders({ method: 'tools/list' }, bare), {});
});

test.run();
