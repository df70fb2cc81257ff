// Keeps the HTTP fixture honest: sessions, headers, streams and every failure must look on the wire as described.
// That an SDK client can use it is in fixtures.spec.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { Drive, failureOf, httpServerPath, modernMeta, post, textOf } from './fixtures/drive.ts';
import { multiByteText } from './fixtures/misbehave.ts';
import { type Json, objectOr } from './fixtures/wire.ts';
import { suite } from './helpers/suite.ts';

const drive = new Drive();

const http = suite('HTTP fixture, its options and failures');
http.after.each(() => drive.closeAll());
const ping = { id: 1, method: 'ping' };
const echo = { id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } };

http('records every request with its headers and wants its session id', async () => {
  const fixture = await drive.httpFixture();
  assert.is((await post(fixture.url, ping)).status, 400);
  assert.is((await post(fixture.url, ping, { 'mcp-session-id': 'unknown' })).status, 404);
  await drive.httpClient(fixture.url);
  assert.is(fixture.sessions.size, 1);
  const initialize = fixture.requests.find(({ message }) => message?.method === 'initialize');
  assert.is(initialize?.headers.host, `127.0.0.1:${fixture.port}`);
  assert.match(String(initialize?.headers.accept), /application\/json.*text\/event-stream/);
  const other = await drive.httpFixture({ unknownSession: 400 });
  assert.is((await post(other.url, ping, { 'mcp-session-id': 'unknown' })).status, 400);
});

http('forgets and ends sessions', async () => {
  const fixture = await drive.httpFixture();
  const client = await drive.httpClient(fixture.url);
  fixture.forgetSessions();
  await failureOf(client.ping());
  const second = drive.client();
  const transport = new StreamableHTTPClientTransport(new URL(fixture.url));
  await second.connect(transport as Parameters<Client['connect']>[0]);
  assert.is(fixture.sessions.size, 1);
  await transport.terminateSession();
  assert.is(fixture.sessions.size, 0);
});

http('opens one GET stream per session, or none', async () => {
  const fixture = await drive.httpFixture();
  const started = await post(fixture.url, { id: 0, method: 'initialize', params: {} });
  const headers = {
    accept: 'text/event-stream',
    'mcp-session-id': started.headers.get('mcp-session-id') ?? '',
  };
  const first = await fetch(fixture.url, { headers });
  assert.is(first.status, 200);
  assert.is((await fetch(fixture.url, { headers })).status, 409);
  fixture.notify('notifications/tools/list_changed');
  const chunk = await first.body?.getReader().read();
  assert.match(
    new TextDecoder().decode(chunk?.value),
    /data: \{"method":"notifications\/tools\/list_changed"/,
  );
  const stateless = await drive.httpFixture({ sessions: false });
  assert.is((await fetch(stateless.url, { headers })).status, 405);
});

http('uses the GET stream to talk back when answers are JSON', async () => {
  const fixture = await drive.httpFixture();
  const client = await drive.httpClient(fixture.url);
  const logged: unknown[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    logged.push(params.data);
  });
  while (![...fixture.sessions.values()].some(({ stream }) => stream !== undefined)) await delay(5);
  const answered = JSON.parse(await textOf(client, 'misbehave', { how: 'server-request' }));
  assert.equal(answered, { roots: { result: { roots: [{ uri: 'file:///a' }] } }, ping: { result: {} } });
  await textOf(client, 'log', { text: 'a line' });
  while (logged.length === 0) await delay(5);
  assert.equal(logged, ['a line']);
});

http('refuses wrong media types, versions and bodies', async () => {
  const fixture = await drive.httpFixture({ sessions: false });
  assert.is((await post(fixture.url, ping, { accept: 'application/json' })).status, 406);
  assert.is((await post(fixture.url, ping, { 'content-type': 'text/plain' })).status, 415);
  assert.is((await post(fixture.url, ping, { 'mcp-protocol-version': '1999-01-01' })).status, 400);
  const accept = 'application/json, text/event-stream';
  const headers = { accept, 'content-type': 'application/json' };
  const broken = await fetch(fixture.url, { method: 'POST', headers, body: '[{' });
  assert.is(broken.status, 400);
});

http('compares the headers of the modern era with the body', async () => {
  const fixture = await drive.httpFixture({ era: 'modern' });
  const version = { 'mcp-protocol-version': '2026-07-28' };
  const call = { ...echo, params: { ...echo.params, _meta: modernMeta } };
  const status = async (message: Json, headers: Record<string, string>) => {
    const answer = await post(fixture.url, message, headers);
    return [answer.status, objectOr(answer.body.error).code];
  };
  const good = { ...version, 'mcp-method': 'tools/call', 'mcp-name': 'echo' };
  assert.equal(await status(call, good), [200, undefined]);
  assert.equal(await status(call, { ...good, 'mcp-name': '=?base64?ZWNobw==?=' }), [200, undefined]);
  assert.equal(await status(call, { ...good, 'mcp-name': 'other' }), [400, -32020]);
  assert.equal(await status(call, { ...good, 'mcp-method': 'tools/list' }), [400, -32020]);
  assert.equal(await status(call, { 'mcp-method': 'tools/call', 'mcp-name': 'echo' }), [400, -32020]);
  assert.equal(await status(echo, good), [400, -32602]);
  assert.equal(await status({ id: 1, method: 'initialize', params: {} }, {}), [404, -32601]);
  const unknown = { id: 1, method: 'no/such', params: { _meta: modernMeta } };
  assert.equal(await status(unknown, { ...version, 'mcp-method': 'no/such' }), [404, -32601]);
  const future = { ...modernMeta, 'io.modelcontextprotocol/protocolVersion': '2031-01-01' };
  const unsupported = await post(fixture.url, { ...echo, params: { ...echo.params, _meta: future } }, good);
  assert.is(unsupported.status, 400);
  assert.equal(objectOr(objectOr(unsupported.body.error).data).supported, ['2026-07-28']);
  const discover = { id: 1, method: 'server/discover', params: { _meta: modernMeta } };
  const discovered = await post(fixture.url, discover, { ...version, 'mcp-method': 'server/discover' });
  assert.equal(objectOr(discovered.body.result).supportedVersions, ['2026-07-28']);
});

http('has no handshake and no session when it is bare', async () => {
  const fixture = await drive.httpFixture({ era: 'bare' });
  const refused = await post(fixture.url, { id: 1, method: 'initialize', params: {} });
  assert.is(objectOr(refused.body.error).code, -32601);
  assert.is((await post(fixture.url, echo)).status, 200);
});

http('notices a client that goes away, and only the modern era calls that a cancellation', async () => {
  for (const [era, cancelled] of [
    ['legacy', []],
    ['modern', [9]],
  ] as const) {
    const fixture = await drive.httpFixture({ era, sessions: false, answers: 'sse' });
    const params = { name: 'sleep', arguments: { ms: 60_000 }, _meta: modernMeta };
    await failureOf(
      fetch(fixture.url, {
        method: 'POST',
        signal: AbortSignal.timeout(100),
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...(era === 'modern' ? { 'mcp-protocol-version': '2026-07-28' } : {}),
          'mcp-method': 'tools/call',
          'mcp-name': 'sleep',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params }),
      }),
    );
    while (fixture.closedStreams.length === 0) await delay(5);
    assert.equal([fixture.closedStreams, fixture.state.cancelled], [[9], cancelled]);
  }
});

http('fails as planned, once, and only for the method named', async () => {
  const fixture = await drive.httpFixture({ sessions: false });
  const outcome = async (): Promise<string> => {
    try {
      const { status, text } = await post(fixture.url, echo);
      return `${status} ${text.slice(0, 24)}`;
    } catch {
      return 'no answer';
    }
  };
  const patterns = {
    html: /^200 <!doctype html>/,
    '500': /^500 /,
    '502-html': /^502 <!doctype/,
    '503': /^503 overloaded/,
    '404': /^404 nothing/,
    '401': /^401 /,
    redirect: /^302 $/,
    reset: /^no answer$/,
    'reset-midway': /^no answer$/,
    'truncated-sse': /^200 event: message\ndata: /,
    'wrong-id': /^200 \{"result"/,
    'two-answers': /^200 data: \{"result"/,
    empty: /^200 $/,
    'not-json': /^200 this is not JSON$/,
  } as const;
  for (const [how, pattern] of Object.entries(patterns) as [keyof typeof patterns, RegExp][]) {
    fixture.failNext(how, { method: 'tools/call' });
    assert.is((await post(fixture.url, ping)).status, 200);
    assert.match(await outcome(), pattern, how);
    assert.match(await outcome(), /^200 \{"result":\{"content":/, `after ${how}`);
  }
  fixture.failNext('huge', { bytes: 1000 });
  assert.ok((await post(fixture.url, ping)).text.length > 1000);
  fixture.failNext('slow-headers', { delayMs: 100 });
  const startedMs = performance.now();
  assert.match(await outcome(), /^200 /);
  assert.ok(performance.now() - startedMs >= 95);
  fixture.failNext('never');
  const hanging = fetch(fixture.url, {
    method: 'POST',
    body: JSON.stringify(ping),
    signal: AbortSignal.timeout(200),
  });
  await failureOf(hanging);
  await fetch(new URL('/elsewhere', fixture.url));
  assert.is(fixture.redirected.length, 1);
});

http('commits the crimes of the misbehave tool in a JSON body and in an event stream', async () => {
  for (const answers of ['json', 'sse'] as const) {
    const fixture = await drive.httpFixture({ sessions: false, answers });
    const misbehave = async (how: string): Promise<string> => {
      const params = { name: 'misbehave', arguments: { how, bytes: 100 } };
      return (await post(fixture.url, { id: 1, method: 'tools/call', params })).text;
    };
    assert.match(await misbehave('garbage'), /this is not a JSON line/);
    assert.match(await misbehave('string-id'), /"id":"1"/);
    assert.match(
      await misbehave('two-answers'),
      answers === 'sse' ? /^data: .*\n\ndata: .*\n\n$/ : /first.*\n.*second/,
    );
    const split = (await misbehave('split-utf8')).replace(/^data: /, '');
    assert.is(JSON.parse(split).result.content[0].text, multiByteText);
    await failureOf(misbehave('exit'));
  }
});

http('refuses connections, listens again on the same port, and falls ill', async () => {
  const fixture = await drive.httpFixture({ sessions: false });
  const { port } = fixture;
  await fixture.refuse();
  await failureOf(post(fixture.url, ping));
  await fixture.listenAgain();
  assert.is(fixture.port, port);
  assert.is((await post(fixture.url, ping)).status, 200);
  fixture.setHealthy(false);
  assert.is(objectOr((await post(fixture.url, ping)).body.error).code, -32603);
  assert.is((await post(fixture.url, echo)).status, 200);
  fixture.setHealthy(false, 'status');
  assert.is((await post(fixture.url, ping)).status, 503);
  fixture.setHealthy(true);
  assert.equal((await post(fixture.url, ping)).body.result, {});
});

http('runs as a program', async () => {
  const child = spawn(process.execPath, [httpServerPath, '--port=0', '--sessions=no', '--name=program']);
  drive.onClose(() => child.kill('SIGKILL'));
  const [chunk] = await once(child.stdout, 'data');
  const port = Number(/^listening (\d+)\n$/.exec(String(chunk))?.[1]);
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'name' } }),
  });
  assert.match(await response.text(), /"text":"program"/);
  child.kill('SIGTERM');
  assert.equal(await once(child, 'exit'), [0, null]);
});

http.run();
