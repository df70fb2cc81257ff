// What a request gets in each era, `_meta` inside and headers outside; who answers a request of the server, and which one is
// the gateway's own that came back.

import * as assert from 'uvu/assert';
import {
  eraHeaders,
  isEcho,
  outcomeOf,
  paramsWithToken,
  withEraMetadata,
} from '../../src/transports/handshake.ts';
import { noCapability } from '../conformance/upstream.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('era');

const client = { name: 'stagedoor', version: '1.2.3' };
const modern = { era: 'modern', protocolVersion: '2026-07-28' } as const;
const legacy = { era: 'legacy', protocolVersion: '2025-11-25' } as const;
const bare = { era: 'bare', protocolVersion: '' } as const;

test('gives a modern request its revision, its client and no capabilities, and keeps what the caller gave but the revision', () => {
  const ours = {
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': client,
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  };
  const own = { traceparent: 't', 'io.modelcontextprotocol/clientCapabilities': { sampling: {} } };
  const _meta = { ...own, 'io.modelcontextprotocol/protocolVersion': '1999-01-01' };
  const given = { method: 'tools/call', params: { name: 'echo', _meta } };
  const before = structuredClone(given);
  assert.equal(withEraMetadata(given, modern, client).params, { name: 'echo', _meta: { ...ours, ...own } });
  assert.equal(given, before, 'what was given is not touched');
  assert.equal(withEraMetadata({ method: 'tools/list' }, modern, client).params, { _meta: ours });
});

test('returns legacy and bare requests as they are', () => {
  const request = { method: 'tools/list', params: {} };
  for (const peer of [legacy, bare]) assert.is(withEraMetadata(request, peer, client), request);
});

test('repeats method, name and mirrored parameters in the headers of the modern era, and no other header of the caller', () => {
  const headers = {
    'mcp-param-region': 'eu',
    'MCP-Param-A': 'b',
    cookie: 'x',
    'mcp-method': 'y',
    'mcp-name': 'z',
  };
  const call = { method: 'tools/call', params: { name: 'echo' }, headers };
  assert.equal(eraHeaders(withEraMetadata(call, modern, client), modern), {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'echo',
    'mcp-param-region': 'eu',
    'MCP-Param-A': 'b',
  });
  assert.equal(eraHeaders(call, legacy), { 'mcp-protocol-version': '2025-11-25' });
  for (const [method, params, name] of [
    ['tools/list', {}, undefined],
    ['prompts/get', { name: 'greet me' }, 'greet me'],
    ['resources/read', { uri: 'file:///a%20b' }, 'file:///a%20b'],
    ['tools/call', { name: 'Übung' }, '=?base64?w5xidW5n?='],
  ] as const)
    assert.is(eraHeaders({ method, params }, modern)['mcp-name'], name);
});

test('names the revision to legacy servers after the handshake, and nothing to bare ones', () => {
  assert.equal(eraHeaders({ method: 'initialize' }, { era: 'legacy', protocolVersion: '' }), {});
  assert.equal(eraHeaders({ method: 'tools/list' }, { era: 'bare', protocolVersion: '1' }), {});
});

test('puts a progress token into params whose _meta is no object', () => {
  const request = { method: 'tools/call', params: { _meta: 'nonsense' } };
  assert.equal(paramsWithToken(request, 5), { _meta: { progressToken: 5 } });
});

test('asks a client what it declared, and what is not known here if it declared anything', () => {
  const sampler = { ...noCapability, capabilities: { sampling: {} } };
  for (const [method, profile, isAsked] of [
    ['sampling/createMessage', sampler, true],
    ['tasks/get', sampler, true],
    ['roots/list', sampler, false],
    ['tasks/get', noCapability, false],
    ['tasks/get', undefined, false],
  ] as const)
    assert.is(outcomeOf(method, profile) === 'ask', isAsked, method);
});

test('takes a request with the id and the method of its own for its own, but a ping', () => {
  for (const [id, method, isOwn] of [
    [1, 'initialize', true],
    [2, 'initialize', false],
    ['1', 'initialize', false],
    [1, 'roots/list', false],
  ] as const)
    assert.is(isEcho({ kind: 'request', id, method, params: {} }, { id: 1, method: 'initialize' }), isOwn);
  assert.is(isEcho({ kind: 'request', id: 1, method: 'ping', params: {} }, { id: 1, method: 'ping' }), false);
});

test.run();
