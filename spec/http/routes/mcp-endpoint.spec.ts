// The routes of the MCP endpoint: their paths and their rate limit. The endpoint is tested in spec/protocol and in the journeys.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { modern, openSession, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { head, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of the MCP endpoint');

const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const windowOf = ({ headers }: { headers: Headers }) =>
  ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`));

test('do not collide with the operations of a template, even for a template called mcp or tools', async () => {
  const app = await startApp();
  for (const template of ['demo', 'mcp', 'tools']) {
    const tools = [{ name: `of-${template}`, inputSchema: { type: 'object' } }];
    await app.serve(template, 'one', ({ method }) => (method === 'tools/list' ? { tools } : {}));
  }
  const { body: message, headers } = modern('tools/list');
  const listed = async (path: string) => {
    const { body } = await app.ask('POST', path, { body: message, headers });
    assert.is(body.jsonrpc, '2.0', path);
    return Object(body.result).tools.map(({ name }: { name: string }) => name);
  };
  assert.equal(await listed('/mcp/mcp'), ['of-mcp']);
  assert.equal(await listed('/mcp/mcp/mcp'), ['of-mcp']);
  assert.equal(await listed('/mcp/tools'), ['of-tools']);
  assert.is((await listed('/mcp/')).length, 3);
  const answered = async (method: string, path: string, body?: object) => {
    const answer = await app.ask(method, path, { body });
    assert.is(answer.body.jsonrpc, undefined, path);
    return answer.status;
  };
  assert.is(await answered('GET', '/mcp/mcp/health'), 200);
  assert.is(await answered('GET', '/mcp/mcp/tools/list'), 200);
  assert.is(await answered('POST', '/mcp/mcp/tools/call', { name: 'of-mcp' }), 200);
  assert.is(await answered('POST', '/mcp/demo/mcp/mcp', message), 404);
  assert.is(await answered('POST', '/mcp/demo/tools', message), 404);
  await app.close();
});

test('consume the rate limit per request of a batch, and not for notifications, refused GETs and DELETE', async () => {
  const app = await startWithAccounts({ limits: { userHourlyLimit: 9, apiKeyHourlyLimit: 9 } });
  await app.serve('demo', 'one');
  const session = await openSession(app, '/mcp/demo', { credentials: app.user, version: '2025-03-26' });
  const post = (body: unknown) => app.ask('POST', '/mcp/demo', { body, headers: session });
  const calls = (count: number) => Array.from({ length: count }, (_, id) => toolCall('count', {}, id));
  for (const [answer, status, left] of [
    [await post({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202, '8'],
    [await app.ask('GET', '/mcp/demo', { headers: { ...session, accept: 'text/html' } }), 406, '8'],
    [await post(calls(1)), 200, '7'],
    [await post(calls(5)), 200, '2'],
  ] as const)
    assert.equal([answer.status, ...windowOf(answer)], [status, '9', left]);
  const over = await post(calls(3));
  assert.equal([over.status, ...windowOf(over)], [429, '9', '2']);
  assert.equal([over.body.jsonrpc, over.body.id], ['2.0', null]);
  const retryAfter = Number(over.headers.get('retry-after'));
  assert.ok(retryAfter > 3_500 && retryAfter <= 3_600);
  assert.match((await post(calls(1))).text, '"7"', 'none of the three was made');
  // A caller over the limit may still end its session.
  await post(calls(1));
  const end = await app.ask('DELETE', '/mcp/demo', { headers: session });
  assert.equal([end.status, ...windowOf(end)], [200, '9', '0']);
  await app.close();
});

test('a message that is refused as invalid counts as one request, of either era', async () => {
  const app = await startWithAccounts({ limits: { userHourlyLimit: 10, apiKeyHourlyLimit: 9 } });
  await app.serve('demo', 'one');
  const session = await openSession(app, '/mcp/demo', { credentials: app.user });
  const { body, headers } = modern('tools/list');
  const credentials = { ...app.user, ...headers };
  const post = (body: unknown, headers: Readonly<Record<string, string>>) =>
    app.ask('POST', '/mcp/demo', { body, headers });
  for (const [answer, status, left] of [
    [await post({ ...body, params: {} }, credentials), 400, '8'],
    [await post(body, { ...credentials, 'mcp-method': 'tools/call' }), 400, '7'],
    [await post({ ...body, method: 'ping' }, { ...credentials, 'mcp-method': 'ping' }), 404, '6'],
    [await post([body], credentials), 400, '5'],
    [await post('{', session), 400, '4'],
    [await post({ jsonrpc: '1.0' }, session), 400, '3'],
    [await post(MESSAGE, { ...session, 'mcp-session-id': 'unknown' }), 404, '2'],
    [await post(body, credentials), 200, '1'],
    [await post({ jsonrpc: '2.0', method: 'notifications/custom' }, session), 202, '1'],
    [await post({ ...body, params: {} }, credentials), 400, '0'],
    [await post({ ...body, params: {} }, credentials), 429, '0'],
  ] as const)
    assert.equal([answer.status, ...windowOf(answer)], [status, '10', left]);
  await app.close();
});

test('a caller without requests left may send 60 messages a second; more are refused before the body is read', async () => {
  let nowMs = 0;
  const limits = { userHourlyLimit: 1, apiKeyHourlyLimit: 9 };
  const app = await startWithAccounts({ limits, clock: { ...systemClock, now: () => nowMs } });
  try {
    await app.serve('demo', 'one');
    const headers = await openSession(app, '/mcp/demo', { credentials: app.user });
    const others = await openSession(app, '/mcp/demo', { credentials: await app.key(['tools:call']) });
    const body = { jsonrpc: '2.0', method: 'notifications/custom' };
    const send = (headers: Readonly<Record<string, string>>) =>
      app.ask('POST', '/mcp/demo', { body, headers });
    const statuses: number[] = [];
    for (let n = 0; n < 60; n += 1) statuses.push((await send(headers)).status);
    assert.equal([...new Set(statuses)], [202]);
    const refused = await send(headers);
    assert.equal(
      [refused.status, refused.headers.get('retry-after'), ...windowOf(refused)],
      [429, '1', '1', '0'],
    );
    assert.is(Object(refused.body.error).data.error_code, 'RATE_LIMIT_EXCEEDED');
    for (let n = 0; n < 70; n += 1) assert.is((await send(others)).status, 202);
    const socket = await openRaw(app.port);
    socket.write(head('POST /mcp/demo', { ...headers, 'content-length': '60000' }));
    assert.match(await readUntil(socket, 'RATE_LIMIT_EXCEEDED'), /^HTTP\/1.1 429 /);
    socket.destroy();
    nowMs = 1_000;
    assert.is((await send(headers)).status, 202);
  } finally {
    await app.close();
  }
});

test.run();
