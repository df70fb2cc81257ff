// HTTP+SSE, the older transport: the conformance suites, then what only it can do, and one stream with its posts.

import type { IncomingMessage, ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../../src/domain/calls/exchange-event.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { HttpEndpoint } from '../../../src/transports/http/http-endpoint.ts';
import { OPENINGS_PER_OWNER } from '../../../src/transports/http/sessions/http-openings.ts';
import type { OpenOptions } from '../../../src/transports/open-options.ts';
import { open as sse } from '../../../src/transports/sse/sse.ts';
import { SseChannel } from '../../../src/transports/sse/sse-channel.ts';
import type { Closed, Transport } from '../../../src/transports/transport.ts';
import {
  conversationConformance,
  everyCapability,
  noCapability,
  openFor,
} from '../../conformance/conversation.ts';
import {
  callTool,
  failure,
  refusal,
  see,
  textOf,
  transportConformance,
} from '../../conformance/transport.ts';
import { type SseFixture, type SseServerOptions, startSseServer } from '../../fixtures/sse-server.ts';
import { until } from '../../helpers/eventually.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition, openOptions } from '../http/open-http.ts';
import { messageOf, withRawServer } from '../raw-server.ts';

const test = suite('sse');

const definition = (endpoint: string) => httpDefinition(endpoint, { transport: 'sse' });

const subject = {
  name: 'sse',
  open: async () => {
    const server = await startSseServer();
    const transport = await sse(definition(server.url), openOptions());
    return { transport, release: () => server.close() };
  },
};
transportConformance(test, subject);
conversationConformance(test, subject);

async function withSse(
  options: SseServerOptions,
  body: (backend: { transport: Transport; server: SseFixture }) => Promise<void>,
): Promise<void> {
  const server = await startSseServer(options);
  try {
    const transport = await sse(definition(server.url), openOptions());
    try {
      await body({ transport, server });
    } finally {
      await transport.close();
    }
  } finally {
    await server.close();
  }
}

const openingFails = (endpoint: string, more: Partial<OpenOptions> = {}) =>
  refusal(sse(definition(endpoint), openOptions(more)));

async function failsWith(options: SseServerOptions, more: Partial<OpenOptions> = {}): Promise<string> {
  const server = await startSseServer(options);
  try {
    const { message } = await openingFails(server.url, more);
    await until(() => server.streams === 0, 'no stream is left');
    return message;
  } finally {
    await server.close();
  }
}

test('an error of a call shows no secrets', async () => {
  const server = await startSseServer();
  const headers = { 'x-key': 'k3y-of-the-gateway' };
  const transport = await sse(httpDefinition(server.url, { transport: 'sse', headers }), openOptions());
  const { events } = await see(transport.exchange(callTool('k3y-of-the-gateway', {})));
  await transport.close();
  await server.close();
  const [event] = events;
  if (event?.kind !== 'error') throw new Error('no error came');
  assert.match(event.error.message, /\*\*\*/);
  assert.not.match(event.error.message, /k3y/);
});

test('posts to the path that the server names', async () => {
  await withSse({}, async ({ transport, server }) => {
    assert.is(transport.kind, 'sse');
    assert.is(transport.handshake.protocolVersion, '2025-11-25');
    await see(transport.exchange(callTool('echo', { text: 'x' })));
    const posts = server.requests.filter(({ verb }) => verb === 'POST');
    assert.equal(
      posts.map(({ path, message }) => [path, message?.method]),
      ['initialize', 'notifications/initialized', 'tools/call'].map((method) => ['/message', method]),
    );
  });
});

test('never posts to another origin', async () => {
  for (const [endpointEvent, expected] of [
    [
      'http://evil.example/message?id=x',
      'names http://evil.example/message, which is another origin: messages are',
    ],
    [
      '//evil.example/message',
      'names http://evil.example/message, which is another origin: messages are only posted to',
    ],
    ['https://127.0.0.1/m', 'names https://127.0.0.1/m, which is another origin'],
    ['http://', 'its endpoint event names no address'],
    [`/${'x'.repeat(3_000)}`, 'its endpoint event has more than 2048 bytes'],
  ] as const)
    assert.match(await failsWith({ endpointEvent }), expected);
});

test('follows a redirect within the origin, and no other', async () => {
  assert.match(await failsWith({ postStatus: 307 }), 'answered 404');
  assert.match(await failsWith({ postStatus: 302 }), /POST .* answered 302/);
});

test('reports why it could not open', async () => {
  const server = await startSseServer();
  const { url } = server;
  assert.match((await openingFails(url.replace('/sse', '/nothing'))).message, 'answered 404');
  assert.match((await openingFails(url, { network: { isDenied: () => true } })).message, 'is not allowed');
  assert.match((await openingFails(url, { signal: AbortSignal.abort() })).message, 'cancelled');
  await server.close();
  const refused = await openingFails(url);
  assert.is(refused.facts.health, 'unreachable');
  assert.match(await failsWith({ endpointEvent: '' }, { handshakeTimeoutMs: 100 }), 'within 0.1 s');
});

test('ends when its stream ends, and fails all open calls and conversations', async () => {
  await withSse({}, async ({ transport, server }) => {
    const conversation = await openFor(transport);
    const closings: Closed[] = [];
    for (const { closed$ } of [transport, conversation]) closed$.subscribe((closed) => closings.push(closed));
    const left = [transport, conversation].map((way) => see(way.exchange(callTool('sleep', { ms: 60_000 }))));
    await until(
      () => server.requests.filter(({ message }) => message?.method === 'tools/call').length === 2,
      'sent',
    );
    server.endStreams();
    for (const { end } of await Promise.all(left)) {
      assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
    }
    const closed = { reason: 'it ended its event stream', isExpected: false };
    assert.equal(closings, [closed, closed]);
    const late = await see(transport.exchange(callTool('echo', { text: 'late' })));
    assert.equal(failure(late.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
  });
});

test('opens a limited number of streams of one owner at a time, and those of others beside them', async () => {
  const streams: ServerResponse[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      // All but the first never get an endpoint event.
      response.write(streams.push(response) === 1 ? 'event: endpoint\ndata: /message\n\n' : ': silence\n\n');
      return;
    }
    const { id, method } = await messageOf(request);
    response.writeHead(202).end();
    const result = { protocolVersion: '2024-11-05', capabilities: {} };
    if (method === 'initialize')
      streams[0]?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
  };
  await withRawServer(serve, async ({ url }) => {
    const transport = await sse(definition(url), openOptions());
    const open = (owner: string) =>
      codeOf(
        transport.openConversation({
          profile: noCapability,
          signal: new AbortController().signal,
          ownerId: owner,
        }),
      );
    const opening = Array.from({ length: 2 * OPENINGS_PER_OWNER }, () => open('ada'));
    await until(() => streams.length === 1 + OPENINGS_PER_OWNER, 'her share is under way');
    opening.push(open('bo'));
    await until(() => streams.length === 2 + OPENINGS_PER_OWNER, 'his is under way, too');
    await transport.close();
    assert.equal(new Set(await Promise.all(opening)), new Set(['BACKEND_UNAVAILABLE']));
    assert.is(streams.length, 2 + OPENINGS_PER_OWNER);
  });
});

test('ends the posts of answered and cancelled calls to which the server gives no status', async () => {
  const posts = new Set<ServerResponse>();
  let stream: ServerResponse | undefined;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'GET') {
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
      stream.write('event: endpoint\ndata: /message\n\n');
      return;
    }
    const { id, method, params } = await messageOf(request);
    if (method === 'tools/call') posts.add(response.on('close', () => posts.delete(response)));
    else response.writeHead(202).end();
    const result = { protocolVersion: '2024-11-05', capabilities: {}, content: [] };
    if (id !== undefined && Object(params).name !== 'silent')
      stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
  };
  await withRawServer(serve, async ({ url }) => {
    const transport = await sse(definition(url), openOptions());
    assert.is((await see(transport.exchange(callTool('echo', {})))).end, 'completed');
    const cancelled = transport.exchange(callTool('silent', {})).subscribe();
    await until(() => posts.size === 2, 'it is called');
    cancelled.unsubscribe();
    await until(() => posts.size === 0, 'the connections are closed');
    await transport.close();
  });
});

test('closing the stream of one client ends no other', async () => {
  await withSse({}, async ({ transport, server }) => {
    const conversation = await openFor(transport);
    assert.is(server.streams, 2);
    await conversation.close();
    await until(() => server.streams === 1, 'its stream is closed');
    assert.is(textOf((await see(transport.exchange(callTool('echo', { text: 'x' })))).events[0]), 'x');
  });
});

async function withChannel(
  options: SseServerOptions,
  body: (parts: { channel: SseChannel; server: SseFixture }) => Promise<void>,
): Promise<void> {
  const server = await startSseServer(options);
  const connection = new HttpEndpoint(
    { endpoint: server.url, headers: {} },
    { isDenied: () => false, clock: systemClock },
  );
  const channel = new SseChannel(connection, everyCapability);
  try {
    await body({ channel, server });
  } finally {
    channel.end({ reason: 'closed by the gateway', isExpected: true });
    await connection.destroy();
    await server.close();
  }
}

function follow(channel: SseChannel, name: string, parameters = {}) {
  const seen: (ExchangeEvent | GatewayError | 'completed')[] = [];
  const subscription = channel.send(callTool(name, parameters), {
    next: (event) => seen.push(event),
    error: (error) => seen.push(error),
    complete: () => seen.push('completed'),
  });
  return { seen, cancel: () => subscription?.unsubscribe() };
}

test('fails calls as undelivered before the endpoint event', async () => {
  await withChannel({}, async ({ channel }) => {
    const { seen } = follow(channel, 'count');
    assert.ok(seen[0] instanceof GatewayError && seen[0].delivered === 'no');
    await channel.connect();
    const later = follow(channel, 'count');
    await until(() => later.seen.length === 2, 'it was answered');
    assert.is(later.seen[1], 'completed');
  });
});

test('a request that may not be sent any more when there is a connection for it is not', async () => {
  await withSse({}, async ({ transport }) => {
    let asked = 0;
    const mayBeSent = () => {
      asked += 1;
      return false;
    };
    const request = {
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'hello' } },
      mayBeSent,
    };
    const { events, end } = await see(transport.exchange(request));
    assert.equal([events, failure(end), asked], [[], { code: 'BACKEND_UNAVAILABLE', delivered: 'no' }, 1]);
  });
});

test('fails a call whose POST is refused or breaks; the status decides whether it was delivered', async () => {
  for (const [postStatus, delivered] of [
    [404, 'no'],
    [500, 'unknown'],
    [0, 'unknown'],
  ] as const) {
    await withChannel({ postStatus }, async ({ channel }) => {
      await channel.connect();
      const { seen } = follow(channel, 'count');
      await until(() => seen.length === 1, 'it was refused');
      assert.ok(seen[0] instanceof GatewayError && seen[0].delivered === delivered);
    });
  }
});

test.run();
