// HTTP+SSE towards clients, over a real port: the official SDK's client of that transport, and requests that no client
// library sends. Behind it are real instances; sessions and calls are those of the other transports.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { ElicitRequestSchema, LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { startEverything } from '../../fixtures/everything-server.ts';
import { jsonRequest, openRaw, readAll, readUntil, untilClosed } from '../../helpers/clients/raw-http.ts';
import {
  call,
  hello,
  inFlight,
  initialized,
  message,
  open,
  sessions,
} from '../../helpers/clients/sse-client.ts';
import { until } from '../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('HTTP+SSE towards clients', { timeoutMs: 30_000 });
const app = appFor(test, () =>
  startWithAccounts({
    ...{ maxBodyBytes: 64 * 1024, keepAliveMs: 100, callerCheckMs: 100 },
    limits: { userHourlyLimit: 1_000, apiKeyHourlyLimit: 5 },
  }),
);
const everything = startEverything({ era: 'legacy' });
test.before(async () => {
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
  const { url } = await everything;
  await app.gateway.register('all', { id: 'three', endpoint: url }, { waitMs: 10_000 });
});
test.after(async () => {
  await (await everything).close();
});

/** An official client, connected. */
async function connect(path: string, credentials?: Credentials): Promise<Client> {
  const headers = credentials ?? app.user;
  const client = new Client({ name: 'old', version: '1' }, { capabilities: { elicitation: {} } });
  await client.connect(new SSEClientTransport(new URL(path, app.url), { requestInit: { headers } }));
  return client;
}

function textOf({ content }: Awaited<ReturnType<Client['callTool']>>): string {
  return Array.isArray(content) ? String(content[0]?.text) : '';
}

for (const path of ['/mcp/all/sse', '/mcp/all', '/mcp/all/mcp']) {
  test(`the SDK's client lists, calls, receives progress and logs, and answers elicitation at ${path}`, async () => {
    const client = await connect(path);
    client.setRequestHandler(ElicitRequestSchema, () => ({
      action: 'accept',
      content: { username: 'Ann', email: 'ann@localhost' },
    }));
    const log: unknown[] = [];
    client.setNotificationHandler(
      LoggingMessageNotificationSchema,
      ({ params }) => void log.push(params.data),
    );
    assert.is(client.getServerVersion()?.name, 'everything');
    assert.ok((await client.listTools()).tools.length > 10);
    let reports = 0;
    const onprogress = () => {
      reports += 1;
    };
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress });
    assert.ok(reports >= 2); // the client drops the last one when the answer comes in the same packet
    await client.callTool({ name: 'test_tool_with_logging', arguments: {} });
    assert.is(log.length, 3);
    const asked = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } });
    assert.match(textOf(asked), /accept/);
    await client.ping();
    await client.close();
  });
}

test('/mcp/sse and /mcp serve all templates of the caller as one server', async () => {
  for (const path of ['/mcp/sse', '/mcp']) {
    const client = await connect(path);
    const names = (await client.listTools()).tools.map(({ name }) => name.split('__')[0]);
    assert.equal([...new Set(names)].sort(), ['all', 'demo', 'other']);
    assert.match(textOf(await client.callTool({ name: 'demo__name', arguments: {} })), /one/);
    await client.close();
  }
});

test('a key for some templates uses these, and gets 404 for the stream of another', async () => {
  const credentials = await app.key(['tools:call'], ['demo']);
  const client = await connect('/mcp/sse', credentials);
  const names = (await client.listTools()).tools.map(({ name }) => name.split('__')[0]);
  assert.equal([...new Set(names)], ['demo']);
  await client.close();
  const answer = await app.as(credentials, 'GET', '/mcp/other/sse', {
    headers: { accept: 'text/event-stream' },
  });
  assert.is(answer.status, 404);
});

test('a gateway that is the backend of another one is detected and shown as sse', async () => {
  const outer = await startWithAccounts();
  const endpoint = `${app.url}/mcp/demo/sse`;
  const body = { template_name: 'far', instance: { id: 'gate', endpoint, headers: app.user } };
  const made = await outer.as(outer.admin, 'POST', '/gateway/register?wait=20', { body });
  assert.equal([made.status, made.body.healthy, made.body.transport], [201, true, 'sse'], made.text);
  const health = await outer.as(outer.admin, 'GET', '/mcp/far/health');
  assert.is(Object(health.body.instances).gate.transport, 'sse');
  const call = { name: 'name', arguments: {} };
  assert.match((await outer.as(outer.admin, 'POST', '/mcp/far/tools/call', { body: call })).text, /one/);
  await outer.close();
  await until(() => sessions(app) === 0, 'its session ends with it');
});

test('a template named sse keeps the path /mcp/sse', async () => {
  await app.serve('sse', 'four');
  const [client, all, own] = await Promise.all([
    connect('/mcp/sse'),
    connect('/mcp'),
    connect('/mcp/sse/sse'),
  ]);
  const names = async (one: Client) => (await one.listTools()).tools.map(({ name }) => name);
  assert.ok((await names(client)).includes('name'));
  assert.ok((await names(own)).includes('name'));
  assert.ok((await names(all)).includes('sse__name'));
  const headers = { accept: 'application/json, text/event-stream' };
  const opened = await app.as(app.user, 'POST', '/mcp/sse', { body: hello(), headers });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  assert.is((await app.as(app.user, 'DELETE', '/mcp/sse', { headers: session })).status, 200);
  await Promise.all([client, all, own].map((one) => one.close()));
  await app.gateway.deregister('sse', 'four');
  await app.gateway.deleteTemplate('sse');
});

// --- by hand --------------------------------------------------------------------------------------------------------

test('the stream names its messages path first, and is initialized once; answers are events without ids; comments keep it alive', async () => {
  const stream = await initialized(app);
  assert.match(stream.path, /^\/mcp\/demo\/messages\?sessionId=/);
  const taken = await stream.post(call(1, 'name'));
  assert.equal([taken.status, taken.text], [202, '']);
  assert.ok((await stream.answer(1)).result);
  assert.is((await stream.post(hello())).status, 400);
  await stream.post(message(2, 'ping'));
  assert.equal((await stream.answer(2)).result, {});
  assert.not.match(stream.received(), /^id:/m);
  await readUntil(stream.socket, ': keep-alive');
  stream.socket.destroy();
});

test('a GET with a header of Streamable HTTP, or without Accept: text/event-stream, opens no stream', async () => {
  const get = async (headers: Record<string, string>) =>
    (await app.as(app.user, 'GET', '/mcp/demo', { headers })).status;
  const accept = 'text/event-stream';
  assert.is(await get({ accept, 'mcp-protocol-version': '2025-06-18' }), 400);
  assert.is(await get({ accept, 'mcp-protocol-version': '2026-07-28' }), 405);
  assert.is(await get({ accept, 'last-event-id': 'x.1' }), 400);
  assert.is(await get({ accept, 'mcp-session-id': 'nobody' }), 404);
  assert.is(await get({ accept: '*/*' }), 400);
  assert.is(await get({ accept: 'application/json' }), 406);
});

test('a POST gets 404 for an unknown id, another caller, another path and a closed stream', async () => {
  const stream = await initialized(app);
  const ping = message(1, 'ping');
  const stranger = await app.key(['admin']);
  const refusal = await stream.post(ping, stranger);
  const unknown = await app.as(app.user, 'POST', '/mcp/demo/messages?sessionId=x', { body: ping });
  assert.equal([refusal.status, refusal.text], [404, unknown.text]);
  assert.is((await app.as({}, 'POST', stream.path, { body: ping })).status, 401);
  for (const path of [stream.path.replace('demo', 'other'), stream.path.replace('/demo/messages', '')])
    assert.is((await app.as(app.user, 'POST', path, { body: ping })).status, 404, path);
  assert.is((await app.as(app.user, 'POST', '/mcp/demo/messages', { body: ping })).status, 404);
  assert.is((await stream.post(ping)).status, 202);
  stream.socket.destroy();
  await until(() => sessions(app) === 0, 'no session is left');
  assert.is((await stream.post(ping)).status, 404);
});

test('before initialize other methods get 400, other callers and paths 404, and an invalid initialize an error', async () => {
  const stream = await open(app);
  assert.is((await stream.post(hello(), await app.key(['admin']))).status, 404);
  const elsewhere = stream.path.replace('demo', 'other');
  assert.is((await app.as(app.user, 'POST', elsewhere, { body: hello() })).status, 404);
  assert.is((await stream.post(message(1, 'tools/list'))).status, 400);
  assert.is((await stream.post(message(2, 'initialize'))).status, 202);
  assert.is((await stream.answer(2)).error?.code, -32602);
  assert.is((await stream.post(hello(3))).status, 202);
  assert.ok((await stream.answer(3)).result);
  stream.socket.destroy();
});

test('the requests of a batch are answered one by one in revision 2025-03-26', async () => {
  const stream = await open(app);
  await stream.post(hello(0, '2025-03-26'));
  await stream.answer(0);
  assert.is((await stream.post([message(1, 'ping'), call(2, 'name')])).status, 202);
  assert.ok((await stream.answer(1)).result);
  assert.ok((await stream.answer(2)).result);
  stream.socket.destroy();
});

test('each request consumes the rate limit, and a request over it gets the error 429 on the stream', async () => {
  const stream = await initialized(app, '/mcp/demo/sse', await app.key(['tools:call']));
  for (const id of [1, 2, 3, 4]) await stream.post(call(id, 'name'));
  assert.is((await stream.post(message(9, 'ping'))).headers.get('x-ratelimit-remaining'), '0');
  assert.is((await stream.post(call(5, 'name'))).status, 202);
  assert.is((await stream.answer(5)).error?.code, 429);
  stream.socket.destroy();
});

test('two streams of one caller are two sessions; closing one cancels its calls and leaves the other', async () => {
  const [one, two] = [await initialized(app), await initialized(app)];
  assert.is(sessions(app), 2);
  await one.post(call(1, 'sleep', { ms: 20_000 }));
  await until(() => inFlight(app) === 1, 'the call is there, or gone');
  one.socket.destroy();
  await until(() => inFlight(app) === 0 && sessions(app) === 1, 'one is left');
  await two.post(call(1, 'name'));
  assert.ok((await two.answer(1)).result);
  two.socket.destroy();
});

test('of two concurrent initialize requests one gets 400, and the stream has one session', async () => {
  const stream = await open(app);
  const posted = [1, 2].map((id) => stream.post(hello(id)));
  const statuses = (await Promise.all(posted)).map(({ status }) => status);
  assert.equal(statuses.toSorted(), [202, 400]);
  assert.ok((await stream.answer(statuses.indexOf(202) + 1)).result);
  assert.is(sessions(app), 1);
  stream.socket.destroy();
  await until(() => sessions(app) === 0, 'no session is left');
});

test('a message gets 404 if its stream ends while it is being sent', async () => {
  const stream = await initialized(app);
  const body = JSON.stringify(call(1, 'name'));
  const sender = await openRaw(app.port);
  const request = jsonRequest(`POST ${stream.path}`, body, { ...app.user, Connection: 'close' });
  sender.write(request.slice(0, -10));
  stream.socket.destroy();
  await until(() => sessions(app) === 0, 'no session is left');
  sender.write(request.slice(-10));
  assert.match(await readAll(sender), /^HTTP\/1\.1 404 /);
});

test('initialize without a healthy instance gets 503 on the stream, and can be retried there', async () => {
  await app.gateway.register('late', { id: 'gone', endpoint: 'http://127.0.0.1:9/mcp' });
  const stream = await open(app, '/mcp/late/sse');
  assert.is((await stream.post(hello(1))).status, 202);
  assert.is((await stream.answer(1)).error?.code, 503);
  await app.serve('late', 'one');
  assert.is((await stream.post(hello(2))).status, 202);
  assert.ok((await stream.answer(2)).result);
  stream.socket.destroy();
});

test('a cancelled call gets no answer', async () => {
  const stream = await initialized(app);
  await stream.post(call(1, 'sleep', { ms: 20_000 }));
  await until(() => inFlight(app) === 1, 'the call is there, or gone');
  await stream.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  await until(() => inFlight(app) === 0, 'the call is there, or gone');
  await stream.post(message(2, 'ping'));
  await stream.answer(2);
  assert.not.match(stream.received(), /"id":1\b/);
  stream.socket.destroy();
});

test('a client that disconnects during initialize leaves no session', async () => {
  const stream = await open(app, '/mcp/all/sse');
  const posted = stream.post(hello());
  stream.socket.destroy();
  await posted;
  const next = await initialized(app, '/mcp/all/sse');
  assert.is(sessions(app), 1, 'that of the next client');
  next.socket.destroy();
  await until(() => sessions(app) === 0, 'no session is left');
});

test('a revoked API key loses its stream and its session', async () => {
  const credentials = await app.key(['tools:call']);
  const stream = await initialized(app, '/mcp/demo/sse', credentials);
  const [key] = (await app.auth.accounts.apiKeys()).filter(({ apiKey }) =>
    credentials['x-api-key']?.includes(apiKey.id),
  );
  await app.auth.accounts.revokeApiKey(String(key?.apiKey.id));
  await untilClosed(stream.socket);
  await until(() => sessions(app) === 0, 'no session is left');
});

test('a session that an administrator ends ends its stream', async () => {
  const stream = await initialized(app);
  for (const { id } of app.gateway.sessions()) app.gateway.endSession(id);
  await untilClosed(stream.socket);
});

test('a gateway that stops answers the calls in flight, then ends the streams', async () => {
  const app = await startWithAccounts();
  await app.serve('demo', 'one');
  const [stream, unopened] = [await initialized(app), await open(app)];
  await stream.post(call(1, 'sleep', { ms: 20_000 }));
  await until(() => inFlight(app) === 1, 'the call is there, or gone');
  const closing = app.gateway.close({ graceMs: 100 });
  assert.ok((await stream.answer(1)).error);
  await untilClosed(stream.socket);
  await untilClosed(unopened.socket);
  await closing;
  await app.close();
});

test.run();
