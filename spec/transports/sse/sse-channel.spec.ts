// One stream and its posts, where the transport around them would hide what matters. Most of it is proven in sse.spec.ts.

import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import { HttpConnection } from '../../../src/transports/http/http-connection.ts';
import { SseChannel } from '../../../src/transports/sse/sse-channel.ts';
import { callTool, until } from '../../conformance/transport.ts';
import { everyCapability } from '../../conformance/upstream.ts';
import { type SseFixture, type SseServerOptions, startSseServer } from '../../fixtures/sse-server.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('sse channel');

async function withChannel(
  options: SseServerOptions,
  body: (parts: { channel: SseChannel; server: SseFixture }) => Promise<void>,
): Promise<void> {
  const server = await startSseServer(options);
  const connection = new HttpConnection({ endpoint: server.url, headers: {}, deniedNetworks: [] });
  const channel = new SseChannel(connection, everyCapability);
  try {
    await body({ channel, server });
  } finally {
    channel.end({ reason: 'closed by the gateway', expected: true });
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

test('sends nothing before it was told where to', async () => {
  await withChannel({}, async ({ channel }) => {
    const { seen } = follow(channel, 'count');
    assert.ok(seen[0] instanceof GatewayError && seen[0].delivered === 'no');
    await channel.located;
    const later = follow(channel, 'count');
    await until(() => later.seen.length === 2, 'it was answered');
    assert.is(later.seen[1], 'completed');
  });
});

test('fails the call whose post is refused; whether it arrived is told by the status', async () => {
  for (const [postStatus, delivered] of [
    [404, 'no'],
    [500, 'unknown'],
  ] as const) {
    await withChannel({ postStatus }, async ({ channel }) => {
      await channel.located;
      const { seen } = follow(channel, 'count');
      await until(() => seen.length === 1, 'it was refused');
      assert.ok(seen[0] instanceof GatewayError && seen[0].delivered === delivered);
    });
  }
});

test('cancels what was sent, once', async () => {
  await withChannel({}, async ({ channel, server }) => {
    await channel.located;
    const { cancel } = follow(channel, 'sleep', { ms: 60_000 });
    await until(() => server.requests.some(({ message }) => message?.method === 'tools/call'), 'it arrived');
    cancel();
    cancel();
    const cancels = () =>
      server.requests.filter(({ message }) => message?.method === 'notifications/cancelled').length;
    await until(() => cancels() === 1, 'the backend was told');
    const { seen } = follow(channel, 'count');
    await until(() => seen.length === 2, 'another one is answered');
    assert.is(cancels(), 1);
  });
});

test('a request that cannot be attributed goes to whoever listens, and is refused when nobody does', async () => {
  await withChannel({}, async ({ channel }) => {
    await channel.located;
    const { cancel } = follow(channel, 'sleep', { ms: 60_000 });
    const refused = follow(channel, 'ask', { method: 'roots/list' });
    await until(() => refused.seen.length === 2, 'it was refused');
    assert.match(JSON.stringify(refused.seen[0]), 'result');
    const methods: string[] = [];
    channel.messages$.subscribe((message) => {
      methods.push(message.method);
      if (message.kind === 'request') message.answer({ result: { roots: [] } });
    });
    const asked = follow(channel, 'ask', { method: 'roots/list' });
    await until(() => asked.seen.length === 2, 'it was answered');
    assert.equal(methods, ['roots/list']);
    cancel();
  });
});

test.run();
