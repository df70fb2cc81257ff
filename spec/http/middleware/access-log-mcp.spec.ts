// What the log shows of the MCP endpoint: a real one, with a real gateway and a function as backend behind it.

import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/actors/session-fingerprint.ts';
import type { Json } from '../../fixtures/wire.ts';
import { type AppFixture, startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the access log of the MCP endpoint');

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
};
const call = (id: number, name: string, args: object = {}) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: args },
});

let app: AppFixture;
test.before.each(async () => {
  app = await startApp({ logLevel: 'info' });
  await app.serve('demo', 'one');
});
test.after.each(() => app.close());

/** One request, and the line about it without what is the same in all. */
async function lineOf(body: unknown, headers: Record<string, string> = {}, method = 'POST') {
  const before = app.log.length;
  const accept = 'application/json, text/event-stream';
  const ask = { ...(body === undefined ? {} : { body }), headers: { accept, ...headers } };
  const answer = await app.ask(method, '/mcp/demo', ask);
  while (app.log.length === before) await new Promise(setImmediate);
  const { level, time, pid, hostname, ms, msg, request_id, path, principal, ...line } = app.log[before] ?? {};
  return { answer, line };
}

async function open() {
  const { answer, line } = await lineOf(INITIALIZE);
  const id = answer.headers.get('mcp-session-id') ?? '';
  return { id, line, headers: { 'mcp-session-id': id }, session: sessionFingerprint(id) };
}

const demo = { method: 'POST', template: 'demo' };

test('has the method and the session of every message, from the one that opens it to the one that ends it', async () => {
  const { line, headers, session } = await open();
  assert.equal(line, { ...demo, status: 200, rpc_method: 'initialize', session, instance_id: 'one' });
  const called = await lineOf(call(2, 'name'), headers);
  const asked = { ...demo, status: 200, rpc_method: 'tools/call', session };
  assert.equal(called.line, { ...asked, instance_id: 'one' });
  const told = await lineOf({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
  assert.equal(told.line, { ...demo, status: 202, rpc_method: 'notifications/initialized', session });
  const answered = await lineOf({ jsonrpc: '2.0', id: 9, result: {} }, headers);
  assert.equal(answered.line, { ...demo, status: 202, session });
  const ended = await lineOf(undefined, headers, 'DELETE');
  assert.equal(ended.line, { ...demo, method: 'DELETE', status: 200, session });
});

test('has the code of an error, whoever made it, and the word for it where the gateway did', async () => {
  const { headers, session } = await open();
  const asked = { ...demo, status: 200, rpc_method: 'tools/call', session };
  const ofBackend = await lineOf(call(2, 'error', { code: -32_000 }), headers);
  assert.equal(ofBackend.line, { ...asked, instance_id: 'one', rpc_error: -32_000 });
  const list = { jsonrpc: '2.0', id: 3, method: 'tools/list', params: { cursor: 'x'.repeat(100_000) } };
  const tooLong = await lineOf(list, headers);
  assert.equal(tooLong.line, { ...asked, rpc_method: 'tools/list', rpc_error: -32_602 });
  await app.gateway.deregister('demo', 'one');
  const ofGateway = await lineOf(call(4, 'name'), headers);
  assert.equal(ofGateway.line, { ...asked, rpc_error: 503, error_code: 'NO_HEALTHY_INSTANCE' });
  await lineOf(undefined, headers, 'DELETE');
  const unknown = await lineOf(call(5, 'name'), headers);
  assert.equal(unknown.line, { ...asked, status: 404, rpc_error: -32_001 });
  const noMessage = await lineOf({ jsonrpc: '1.0' }, headers);
  assert.equal(noMessage.line, { ...demo, status: 400, session, rpc_error: -32_600 });
});

test('has how many messages came at once, and the first error among the answers', async () => {
  const { headers, session } = await open();
  const batch = [call(2, 'name'), call(3, 'error', { code: -32_000 }), call(4, 'error', { code: -32_001 })];
  const { line } = await lineOf(batch, headers);
  const told = { rpc_messages: 3, rpc_error: -32_000, session };
  assert.equal(line, { ...demo, status: 200, instance_id: 'one', ...told });
});

test('has the method and the error of clients without sessions', async () => {
  const ask = (method: string, params: object = {}, name?: string) => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'a', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
    const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } };
    return lineOf(message, name === undefined ? headers : { ...headers, 'mcp-name': name });
  };
  const discovered = await ask('server/discover');
  assert.equal(discovered.line, { ...demo, status: 200, rpc_method: 'server/discover' });
  const failed = await ask('tools/call', { name: 'error', arguments: { code: -32_000 } }, 'error');
  const asked = { ...demo, rpc_method: 'tools/call' };
  assert.equal(failed.line, { ...asked, status: 200, instance_id: 'one', rpc_error: -32_000 });
  const mismatched = await ask('tools/call', { name: 'name' }, 'another');
  assert.equal(mismatched.line, { ...asked, status: 400, rpc_error: -32_020 });
  const removed = await ask('ping');
  assert.equal(removed.line, { ...demo, status: 404, rpc_method: 'ping', rpc_error: -32_601 });
});

test('never has an id of a session, an argument or a result', async () => {
  const { id, headers } = await open();
  await lineOf(call(2, 'echo', { text: 'a secret argument' }), headers);
  const text = app.log.map((line: Json) => JSON.stringify(line)).join('\n');
  assert.not.ok(text.includes(id.slice(0, 12)) || text.includes('a secret'));
});

test.run();
