// The stream of what belongs to no request: opened, sorted, opened again, and given up where it is not offered.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import { HttpConnection } from '../../src/transports/http-connection.ts';
import { HttpListener } from '../../src/transports/http-listener.ts';
import { HttpSession } from '../../src/transports/http-session.ts';
import type { BackendNotification } from '../../src/transports/transport.ts';
import { callTool, see, textOf, until } from '../conformance/transport.ts';
import { suite } from '../helpers/suite.ts';
import { withBackend } from './open-http.ts';
import { answerJson, messageOf, withRawServer } from './raw-server.ts';

const test = suite('http listener');

const changed = 'notifications/tools/list_changed';

/** A legacy server whose GET is what the spec says; the listener runs with short waits. */
async function listening(
  onGet: RequestListener,
  body: (backend: { listener: HttpListener; heard: unknown[]; gets: () => number }) => Promise<void>,
  sessionId: string | undefined = 'abc',
): Promise<void> {
  let gets = 0;
  const onRequest: RequestListener = async (request, response) => {
    if (request.method === 'GET') {
      gets += 1;
      return onGet(request, response);
    }
    const { id, method } = await messageOf(request);
    if (id === undefined) return void response.writeHead(202).end();
    if (method !== 'initialize') return void response.writeHead(400).end();
    const headers = sessionId === undefined ? {} : { 'mcp-session-id': sessionId };
    answerJson(response, 200, { jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25' } }, headers);
  };
  await withRawServer(onRequest, async ({ url }) => {
    const connection = new HttpConnection({ endpoint: url, headers: {}, deniedNetworks: [] });
    const client = { name: 'spec', version: '0' };
    const session = new HttpSession(connection, { client, handshakeTimeoutMs: 5_000 });
    await session.open(new AbortController().signal);
    const heard: unknown[] = [];
    const waits = { firstMs: 5, longestMs: 20 };
    const listener = new HttpListener(connection, session, (message) => heard.push(message), waits);
    listener.start();
    await body({ listener, heard, gets: () => gets });
    listener.stop();
    await connection.destroy();
  });
}

const event = `data: {"jsonrpc":"2.0","method":"${changed}"}\n\n`;

test('hears what the server says, in the session and revision of the handshake', async () => {
  let headers: Record<string, unknown> = {};
  await listening(
    (request, response) => {
      headers = request.headers;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event);
    },
    async ({ heard }) => {
      await until(() => heard.length === 1, 'the notification arrived');
      assert.equal(heard, [{ kind: 'notification', method: changed, params: {} }]);
      assert.is(headers['mcp-session-id'], 'abc');
      assert.is(headers['mcp-protocol-version'], '2025-11-25');
      assert.is(headers.accept, 'text/event-stream');
    },
  );
});

test('comes back after the stream ended, broke, or was refused for the moment', async () => {
  const endings: RequestListener[] = [
    (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    (_, response) => response.socket?.resetAndDestroy(),
    (_, response) => void response.writeHead(409).end(),
    (_, response) => void response.writeHead(503).end(),
  ];
  for (const ending of endings) {
    await listening(ending, ({ gets }) => until(() => gets() >= 4, 'it came back three times'));
  }
});

test('gives up where the stream is not offered', async () => {
  const refusals: RequestListener[] = [
    ...[400, 401, 404, 405, 501].map(
      (status): RequestListener =>
        (_, response) =>
          void response.writeHead(status).end(),
    ),
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>'),
  ];
  for (const refusal of refusals) {
    await listening(refusal, async ({ gets }) => {
      await until(() => gets() === 1, 'it asked');
      await new Promise((resolve) => setTimeout(resolve, 60));
      assert.is(gets(), 1);
    });
  }
});

test('does not ask servers without sessions', async () => {
  await listening(
    () => assert.unreachable(),
    async ({ gets }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.is(gets(), 0);
    },
    '',
  );
});

test('waits as long as the server asks for, up to the bound', async () => {
  let last = 0;
  const gaps: number[] = [];
  await listening(
    (_, response) => {
      gaps.push(performance.now() - last);
      last = performance.now();
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 15\n\n');
    },
    ({ gets }) => until(() => gets() >= 3, 'it came back twice'),
  );
  for (const gap of gaps.slice(1)) assert.ok(gap >= 13, `${gap}`);
});

test('stays closed once it was stopped', async () => {
  await listening(
    (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    async ({ gets, listener }) => {
      await until(() => gets() >= 1, 'it asked');
      listener.stop();
      listener.start();
      const asked = gets();
      await new Promise((resolve) => setTimeout(resolve, 40));
      assert.ok(gets() <= asked + 1);
    },
  );
});

test('brings notifications to messages$, also those of a session that was opened again', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const messages: BackendNotification[] = [];
    transport.messages$.subscribe((message) => messages.push(message));
    const open = () => [...server.sessions.values()].some(({ stream }) => stream !== undefined);
    await until(open, 'it listens');
    server.notify(changed);
    await until(() => messages.length === 1, 'the notification arrived');
    server.forgetSessions();
    assert.is(textOf((await see(transport.exchange(callTool('echo', { text: 'x' })))).events[0]), 'x');
    await until(open, 'it listens again');
    server.notify('notifications/resources/list_changed');
    await until(() => messages.length === 2, 'the second notification arrived');
    assert.equal(
      messages.map(({ method }) => method),
      [changed, 'notifications/resources/list_changed'],
    );
  });
});

test('is no matter of the instance: calls work whatever becomes of the stream', async () => {
  await withBackend({ getStream: false }, async ({ transport, server }) => {
    await until(() => server.requests.some(({ verb }) => verb === 'GET'), 'it asked');
    assert.is(textOf((await see(transport.exchange(callTool('echo', { text: 'x' })))).events[0]), 'x');
  });
});

test.run();
