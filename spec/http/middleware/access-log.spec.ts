// The access log: the line of a request to the MCP endpoint and of others. That no line has secrets: log-redaction.spec.ts.

import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { HttpCallReport } from '../../../src/http/replies/http-call-report.ts';
import { initialize, MCP_TYPES, modern, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { until } from '../../helpers/eventually.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Ask, appFor, startApp } from '../../helpers/http/app.ts';
import { endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the access log');

const call = (id: number, name: string, args: object = {}) => toolCall(name, args, id);

const app = appFor(test, () => startApp({ logLevel: 'info' }), 'each');
test.before.each(() => app.serve('demo', 'one'));

/** One request, and the first line after it. */
async function logged(method: string, path: string, ask: Ask = {}, on = app) {
  const before = on.log.length;
  const answer = await on.ask(method, path, ask);
  await until(() => on.log.length !== before);
  return { answer, whole: on.log[before] ?? {} };
}

/** One request to the MCP endpoint, and its line without the fields that all lines share. */
async function lineOf(body: unknown, headers: Record<string, string> = {}, method = 'POST') {
  const ask = { body, headers: { ...MCP_TYPES, ...headers } };
  const { answer, whole } = await logged(method, '/mcp/demo', ask);
  const { level, time, pid, hostname, ms, msg, request_id, path, principal, ...line } = whole;
  return { answer, line };
}

async function open() {
  const { answer, line } = await lineOf(initialize('2025-03-26'));
  const id = answer.headers.get('mcp-session-id') ?? '';
  return { id, line, headers: { 'mcp-session-id': id }, session: sessionFingerprint(id) };
}

const demo = { method: 'POST', template: 'demo' };

test('has the method and the session of every message, from initialize to DELETE', async () => {
  const { line, headers, session } = await open();
  assert.equal(line, {
    ...{ ...demo, status: 200, rpc_method: 'initialize', session, instance_id: 'one' },
    outcome: 'result',
  });
  const called = await lineOf(call(2, 'name'), headers);
  const asked = { ...demo, status: 200, rpc_method: 'tools/call', session };
  const done = { tool: 'name', attempts: 1, outcome: 'result' };
  assert.equal(called.line, { ...asked, instance_id: 'one', ...done });
  const reported = await lineOf({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
  assert.equal(reported.line, { ...demo, status: 202, rpc_method: 'notifications/initialized', session });
  const answered = await lineOf({ jsonrpc: '2.0', id: 9, result: {} }, headers);
  assert.equal(answered.line, { ...demo, status: 202, session });
  const ended = await lineOf(undefined, headers, 'DELETE');
  assert.equal(ended.line, { ...demo, method: 'DELETE', status: 200, session });
});

test('has the JSON-RPC code of an error, and the error code of the gateway if it raised the error', async () => {
  const { headers, session } = await open();
  const asked = { ...demo, status: 200, rpc_method: 'tools/call', session };
  const ofBackend = await lineOf(call(2, 'error', { code: -32_000 }), headers);
  assert.equal(ofBackend.line, {
    ...{ ...asked, instance_id: 'one', rpc_error: -32_000 },
    ...{ tool: 'error', attempts: 1, outcome: 'error' },
  });
  const list = { jsonrpc: '2.0', id: 3, method: 'tools/list', params: { cursor: 'x'.repeat(100_000) } };
  const tooLong = await lineOf(list, headers);
  assert.equal(tooLong.line, { ...asked, rpc_method: 'tools/list', rpc_error: -32_602, outcome: 'error' });
  app.gateway.drain('demo', 'one');
  const ofGateway = await lineOf(call(4, 'name'), headers);
  assert.equal(ofGateway.line, {
    ...{ ...asked, rpc_error: 503, error_code: 'NO_HEALTHY_INSTANCE' },
    ...{ tool: 'name', attempts: 0, outcome: 'failed' },
  });
  await lineOf(undefined, headers, 'DELETE');
  const unknown = await lineOf(call(5, 'name'), headers);
  assert.equal(unknown.line, { ...asked, status: 404, rpc_error: -32_001, outcome: 'error' });
  const noMessage = await lineOf({ jsonrpc: '1.0' }, headers);
  assert.equal(noMessage.line, { ...demo, status: 400, session, rpc_error: -32_600 });
});

test('has the size and the first error of a batch, after a line for each of its calls', async () => {
  const { headers, session } = await open();
  const batch = [call(2, 'name'), call(3, 'error', { code: -32_000 }), call(4, 'error', { code: -32_001 })];
  const before = app.log.length;
  await lineOf(batch, headers);
  const lines = app.log.slice(before);
  const { level, time, pid, hostname, ms, request_id, path, principal, ...line } = lines.at(-1) ?? {};
  const reported = { rpc_messages: 3, rpc_error: -32_000, session, msg: 'request' };
  assert.equal(line, { ...demo, status: 200, instance_id: 'one', ...reported });
  assert.equal(
    lines.slice(0, -1).map((each) => [each.msg, each.request_id, each.tool, each.outcome, each.rpc_error]),
    [
      ['call', request_id, 'name', 'result', undefined],
      ['call', request_id, 'error', 'error', -32_000],
      ['call', request_id, 'error', 'error', -32_001],
    ],
  );
});

test('has the method and the error of stateless clients', async () => {
  const ask = (method: string, params?: Parameters<typeof modern>[1], name?: string) => {
    const { body, headers } = modern(method, params);
    return lineOf(body, name === undefined ? headers : { ...headers, 'mcp-name': name });
  };
  const discovered = await ask('server/discover');
  assert.equal(discovered.line, { ...demo, status: 200, rpc_method: 'server/discover', outcome: 'result' });
  const failed = await ask('tools/call', { name: 'error', arguments: { code: -32_000 } });
  const asked = { ...demo, rpc_method: 'tools/call' };
  assert.equal(failed.line, {
    ...{ ...asked, status: 200, instance_id: 'one', rpc_error: -32_000 },
    ...{ tool: 'error', attempts: 1, outcome: 'error' },
  });
  const mismatched = await ask('tools/call', { name: 'name' }, 'another');
  assert.equal(mismatched.line, { ...asked, status: 400, rpc_error: -32_020, outcome: 'error' });
  const removed = await ask('ping');
  const refused = { ...demo, status: 404, rpc_error: -32_601, outcome: 'error' };
  assert.equal(removed.line, { ...refused, rpc_method: 'ping' });
  assert.is((await ask('m'.repeat(1_000))).line.rpc_method, 'm'.repeat(512));
});

test('has method, tool and outcome of a REST request', async () => {
  const line = async (path: string, body?: object) => {
    const { whole } = await logged(body === undefined ? 'GET' : 'POST', path, { body });
    const { instance_id, rpc_method, tool, attempts, outcome, error_code } = whole;
    return [instance_id, rpc_method, tool, attempts, outcome, error_code];
  };
  const called = (name: string) => line('/mcp/demo/tools/call', { name });
  assert.equal(await called('name'), ['one', 'tools/call', 'name', 1, 'result', undefined]);
  assert.equal(await called('fail'), ['one', 'tools/call', 'fail', 1, 'tool_error', undefined]);
  const unknown = [undefined, 'tools/call', 'none', 0, 'failed', 'TOOL_NOT_FOUND'];
  assert.equal(await called('none'), unknown);
  const server = await line('/tools/call', { server_id: 'one', tool_name: 'fail' });
  assert.equal(server, ['one', 'tools/call', 'fail', 1, 'tool_error', 'TOOL_EXECUTION_FAILED']);
  const list = await line('/mcp/demo/tools/list');
  assert.equal(list, ['one', 'tools/list', undefined, 1, 'result', undefined]);
});

test('has a second line for a call that ends after its connection', async () => {
  const { headers } = await open();
  const abort = new AbortController();
  const ask = { body: call(2, 'sleep', { ms: 150 }), headers: { ...MCP_TYPES, ...headers } };
  const left = endOf(app.ask('POST', '/mcp/demo', { ...ask, signal: abort.signal }));
  await until(() => app.gateway.stats().activeConnections !== 0);
  abort.abort();
  await left;
  await until(() => app.log.at(-1)?.msg === 'call');
  const [gone, ended] = app.log.slice(-2);
  assert.equal([gone?.status, gone?.cut, gone?.outcome, gone?.attempts], [499, true, undefined, 1]);
  assert.equal([ended?.tool, ended?.outcome, ended?.request_id], ['sleep', 'result', gone?.request_id]);
});

test('has the first 512 characters of a path, and the principal', async () => {
  const other = await startWithAccounts({ logLevel: 'info' });
  const lineFor = async (path: string, headers: Record<string, string>) =>
    (await logged('GET', path, { headers }, other)).whole;
  assert.is((await lineFor(`/${'x'.repeat(10_000)}`, {})).path, `/${'x'.repeat(511)}`);
  assert.match(String((await lineFor('/auth/me', other.user)).principal), /^user:/);
  assert.is((await lineFor('/auth/me', { 'x-api-key': 'sd_unknown' })).principal, undefined);
  await other.close();
});

test('has no ids of sign-ins and of addresses for connecting', async () => {
  const id = 'abcdef'.padEnd(43, 'x');
  for (const path of ['/oauth/interaction/', '/oauth/authorize/', '/connections/']) {
    const { whole } = await logged('GET', `${path}${id}/login`);
    assert.is(whole.path, `${path}abcdef.../login`);
  }
  assert.is((await logged('GET', '/oauth/device/BCDFGHJK/login')).whole.path, '/oauth/device/.../login');
});

test('records the end of a call once, and releases its arguments', () => {
  const ends: unknown[] = [];
  const request = { method: 'tools/call', params: { name: 'echo', arguments: { message: 'a secret' } } };
  const report = new HttpCallReport(request, ({ outcome, arguments: sent }) => ends.push([outcome, sent]), 0);
  report.ended({ kind: 'cancelled' });
  report.ended({ kind: 'failed', code: 'INTERNAL_ERROR' });
  assert.equal([ends, report.arguments], [[['cancelled', { message: 'a secret' }]], undefined]);
});

test.run();
