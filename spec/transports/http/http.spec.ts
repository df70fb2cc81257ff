// Streamable HTTP in every era, against the fixture server: the conformance suite; failed openings and their reasons, and that
// nothing is left behind. Misbehaving backends are in http-exchange.spec.ts, lost sessions in http-session.spec.ts.

import { once } from 'node:events';
import { createServer as createTcpServer } from 'node:net';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { open as http, openHttp } from '../../../src/transports/http/http.ts';
import type { OpenOptions } from '../../../src/transports/open-options.ts';
import type { Closed } from '../../../src/transports/transport.ts';
import { conversationConformance, noCapability } from '../../conformance/conversation.ts';
import { callTool, failure, refusal, see, transportConformance } from '../../conformance/transport.ts';
import type { HttpServerOptions } from '../../fixtures/http-options.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';
import { answerJson, messageOf, withRawServer } from '../raw-server.ts';
import { httpDefinition, openOptions, withBackend } from './open-http.ts';

const test = suite('http transport');

const openingFails = (endpoint: string, more: Partial<OpenOptions> = {}) =>
  refusal(http(httpDefinition(endpoint), openOptions(more)));

test('reports why it could not open', async () => {
  await withRawServer(
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>'),
    async ({ url }) => {
      assert.match((await openingFails(url)).message, 'other than the JSON-RPC answer');
    },
  );
  await withRawServer(
    async (request, response) => answerJson(response, 200, await messageOf(request)),
    async ({ url }) => {
      assert.match((await openingFails(url)).message, 'other than the JSON-RPC answer');
    },
  );
  assert.match((await openingFails('http://name.invalid/mcp')).message, 'could not be made (E');
  const options = { network: { isDenied: () => true } };
  const found = (await openingFails('http://127.0.0.1:1/mcp', options)).message;
  assert.match(found, 'address 127.0.0.1 is not allowed');
  assert.match((await openingFails('http://169.254.169.254/mcp')).message, '169.254.169.254 is not allowed');
});

test('reports a refused connection as unreachable', async () => {
  const server = await startHttpServer();
  await server.close();
  const error = await openingFails(server.url);
  assert.match(error.message, 'connection refused');
  assert.is(error.facts.health, 'unreachable');
});

test('an opening fails after the handshake timeout, and when it is aborted', async () => {
  const server = await startHttpServer();
  server.freeze();
  try {
    const late = await openingFails(server.url, { handshakeTimeoutMs: 100 });
    assert.match(late.message, 'within 0.1 s');
    const stop = new AbortController();
    const opening = openingFails(server.url, { signal: stop.signal });
    await until(() => server.requests.length > 2, 'it asked');
    stop.abort();
    assert.match((await opening).message, 'cancelled');
    assert.match((await openingFails(server.url, { signal: AbortSignal.abort() })).message, 'cancelled');
  } finally {
    await server.close();
  }
});

test('deletes the session of an `initialize` whose answer broke off after its headers', async () => {
  const deleted: unknown[] = [];
  await withRawServer(
    async (request, response) => {
      const { method } = await messageOf(request);
      if (request.method === 'DELETE') {
        deleted.push(request.headers['mcp-session-id']);
        response.writeHead(204).end();
      } else if (method !== 'initialize') answerJson(response, 400, {});
      else {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': 'given' });
        response.write(': wait\n\n', () => request.socket.end());
      }
    },
    async ({ url }) => {
      assert.match((await openingFails(url)).message, 'broke before the answer');
      await until(() => deleted.length > 0, 'the session is deleted');
      assert.equal(deleted, ['given']);
    },
  );
});

test('leaves no connection behind after a failed opening', async () => {
  const sockets = new Set<unknown>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket
      .resume()
      .on('close', () => sockets.delete(socket))
      .on('error', () => sockets.delete(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await openingFails(`http://127.0.0.1:${port}/mcp`, { handshakeTimeoutMs: 100 });
  await until(() => sockets.size === 0, 'all connections are closed');
  server.close();
});

test('does not count the loss of a backend as its own end', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const closings: Closed[] = [];
    transport.closed$.subscribe((closed) => closings.push(closed));
    await server.refuse();
    await see(transport.exchange(callTool('echo', { text: 'x' })));
    assert.equal(closings, []);
    await transport.close();
    assert.equal(closings, [{ reason: 'closed by the gateway', isExpected: true }]);
  });
});

test('closes without waiting for a backend that cannot be reached to delete the session', async () => {
  const left: HttpFixture[] = [];
  await withBackend({}, async ({ transport, server }) => {
    left.push(server);
    await server.refuse();
    // The longest wait never ends.
    mock.method(AbortSignal, 'timeout', () => new AbortController().signal);
    await transport.close();
    mock.restoreAll();
  });
  assert.is(left[0]?.sessions.size, 1);
});

test('a call that waits for a new session ends when the transport is closed', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.forgetSessions();
    server.failNext('never', { method: 'initialize' });
    const seen = see(transport.exchange(callTool('echo', { text: 'x' })));
    const initializations = () => server.count('initialize');
    await until(() => initializations() === 2, 'a new session is opened');
    await transport.close();
    assert.equal(failure((await seen).end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  });
});

test('gives a log line of the listening stream to a call that is the only one, to none of several, and to no caller that follows another', async () => {
  await withBackend({ answers: 'json' }, async ({ transport, server }) => {
    await until(() => [...server.sessions.values()].some(({ stream }) => stream !== undefined), 'it listens');
    const say = () => server.notify('notifications/message', { level: 'info', data: 'x' });
    const unowned: string[] = [];
    const kinds: string[] = [];
    transport.messages$.subscribe(({ method }) => unowned.push(method));
    const only = transport
      .exchange(callTool('sleep', { ms: 60_000 }))
      .subscribe(({ kind }) => kinds.push(kind));
    say();
    await until(() => kinds.length > 0, 'the call received the line');
    assert.equal([kinds, unowned], [['notification'], []]);
    const other = transport
      .exchange(callTool('sleep', { ms: 60_000 }))
      .subscribe(({ kind }) => kinds.push(kind));
    say();
    await until(() => unowned.length > 0, 'the line arrived');
    assert.equal([kinds, unowned], [['notification'], ['notifications/message']]);
    only.unsubscribe();
    other.unsubscribe();
    await see(transport.exchange({ ...callTool('echo', { text: 'x' }), callerId: 'ada' }));
    const later = transport
      .exchange({ ...callTool('sleep', { ms: 60_000 }), callerId: 'bo' })
      .subscribe(({ kind }) => kinds.push(kind));
    say();
    await until(() => unowned.length > 1, 'the line, which may be about the call of ada, arrived');
    assert.is(kinds.length, 1);
    later.unsubscribe();
  });
});

test('ends the conversations of many clients a few per turn of the event loop', async () => {
  const server = await startHttpServer();
  try {
    const transport = await openHttp(
      httpDefinition(server.url),
      openOptions({ scheduler: untimedScheduler(5) }),
    );
    const { signal } = new AbortController();
    const turns = new TurnCounter();
    for (let count = 0; count < 40; count += 1) {
      const conversation = await transport.openConversation({ profile: noCapability, signal });
      conversation?.closed$.subscribe(turns.note);
    }
    await transport.end({ reason: 'lost', isExpected: false });
    assert.equal([turns.all, turns.fullest], [40, 5]);
  } finally {
    await server.close();
  }
});

const variants: Readonly<Record<string, HttpServerOptions>> = {
  'legacy, SSE': {
    answers: 'sse',
    sse: { ids: true, priming: true },
  },
  'legacy, JSON': { answers: 'json' },
  'legacy, stateless': { answers: 'sse', sessions: false },
  modern: { era: 'modern', answers: 'sse' },
  bare: { era: 'bare', answers: 'sse' },
  dual: { era: 'dual', answers: 'sse' },
};

for (const [name, options] of Object.entries(variants)) {
  const subject = {
    name,
    open: async () => {
      const server = await startHttpServer(options);
      const transport = await http(httpDefinition(server.url), openOptions());
      return { transport, release: () => server.close() };
    },
  };
  transportConformance(test, subject);
  if (name === 'legacy, SSE') conversationConformance(test, subject);
}

test.run();
