// Dedicated conversations over HTTP, beyond the conformance suite, which runs in http.spec.ts: when the listening
// stream is open, its messages, and the end of a lost session.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { ServerMessage } from '../../../src/domain/mcp/client.ts';
import { gatewayExchange } from '../../../src/transports/gateway-requests.ts';
import type { Closed, Conversation } from '../../../src/transports/transport.ts';
import { answering, everyCapability, openFor } from '../../conformance/conversation.ts';
import { callTool, failure, see, textOf } from '../../conformance/transport.ts';
import type { HttpFixture } from '../../fixtures/http-server.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf } from '../raw-server.ts';
import { idleProgram, withBackend, withRawTransport } from './open-http.ts';

const test = suite('http conversation');

const changed = 'notifications/tools/list_changed';
const echo = (text: string) => callTool('echo', { text });
const verbs = (server: HttpFixture, verb: string) =>
  server.requests.filter((request) => request.verb === verb).length;
const openStreams = (server: HttpFixture) =>
  [...server.sessions.values()].filter(({ stream }) => stream !== undefined).length;

function closingsOf({ closed$ }: Conversation): Closed[] {
  const seen: Closed[] = [];
  closed$.subscribe((closed) => seen.push(closed));
  return seen;
}

test('has a listening stream only while messages$ has subscribers', async () => {
  await withBackend({}, async ({ transport, server }) => {
    await until(() => openStreams(server) === 1, 'the transport listens');
    const conversation = await openFor(transport);
    await see(conversation.exchange(echo('x')));
    assert.is(openStreams(server), 1);
    const messages: ServerMessage[] = [];
    const both = [1, 2].map(() => conversation.messages$.subscribe((message) => messages.push(message)));
    await until(() => openStreams(server) === 2, 'the client listens');
    server.notify(changed);
    await until(() => messages.length === 2, 'both received it');
    assert.equal(messages[0], { kind: 'notification', method: changed, params: {} });
    both[0]?.unsubscribe();
    assert.is(openStreams(server), 2);
    both[1]?.unsubscribe();
    await until(() => openStreams(server) === 1, 'the stream is closed');
    assert.is(verbs(server, 'GET'), 2);
  });
});

test('`untilListening` resolves when the stream of a subscriber is open', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const conversation = await openFor(transport);
    assert.is(conversation.untilListening, undefined);
    const received: string[] = [];
    const subscription = conversation.messages$.subscribe(({ method }) => received.push(method));
    await conversation.untilListening;
    assert.is(conversation.untilListening, undefined);
    server.notify(changed);
    await until(() => received.length === 1, 'a message sent directly after that arrives');
    subscription.unsubscribe();
  });
});

/** What opens the same server: as an endpoint, and as that of a program, which the gateway runs. */
const openers: Readonly<Record<string, Partial<InstanceDefinition>>> = {
  endpoint: {},
  'endpoint of a program': idleProgram,
};

for (const [name, definition] of Object.entries(openers)) {
  test(`${name}: \`resumed$\` of the transport emits when its broken stream is open again`, async () => {
    await withBackend(
      {},
      async ({ transport, server }) => {
        await until(() => openStreams(server) === 1, 'the transport listens');
        await transport.untilListening;
        let resumptions = 0;
        transport.resumed$?.subscribe(() => {
          resumptions += 1;
        });
        for (const { stream } of server.sessions.values()) stream?.end();
        await until(() => verbs(server, 'GET') === 2, 'it listens again');
        await until(() => resumptions === 1, 'messages may have been missed');
      },
      { definition },
    );
  });
}

test('a notification on the stream of a call goes to the call when messages$ has no subscriber', async () => {
  await withBackend({ answers: 'sse' }, async ({ transport }) => {
    const conversation = await openFor(transport);
    const notify = callTool('notify', { method: changed });
    const alone = await see(conversation.exchange(notify));
    assert.equal(alone.events[0], { kind: 'notification', method: changed, params: {} });
    const messages: ServerMessage[] = [];
    conversation.messages$.subscribe((message) => messages.push(message));
    const { events } = await see(conversation.exchange(notify));
    assert.equal([events.length, messages.length], [1, 1]);
  });
});

test('questions and log lines come on the listening stream when calls are answered with JSON', async () => {
  await withBackend({ answers: 'json' }, async ({ transport, server }) => {
    const conversation = await openFor(transport);
    const methods: string[] = [];
    conversation.messages$.subscribe((message) => {
      methods.push(message.method);
      if (message.kind === 'request') message.answer({ result: { roots: [] } });
    });
    await until(() => openStreams(server) === 2, 'the client listens');
    const { asked, seen } = await answering(conversation, { method: 'roots/list' }, () => undefined);
    assert.equal([asked.length, methods], [0, ['roots/list']]);
    assert.equal(JSON.parse(textOf(seen[0])), { result: { roots: [] } });
    const { events } = await see(
      conversation.exchange({ ...callTool('progress', { steps: 2 }), wantsProgress: true }),
    );
    assert.is(events.length, 3);
    const logged = await see(conversation.exchange(callTool('log', { text: 'x' })));
    await until(() => methods.length === 2, 'the log line came');
    assert.equal([logged.events.length, methods[1]], [1, 'notifications/message']);
  });
});

for (const unknownSession of [404, 400] as const) {
  test(`a lost session ends the conversation, and is not replaced (${unknownSession})`, async () => {
    await withBackend({ unknownSession }, async ({ transport, server }) => {
      const conversation = await openFor(transport);
      const order: unknown[] = closingsOf(conversation);
      const listening: unknown[] = [];
      server.forgetSessions();
      const initialized = server.count('initialize');
      const { end } = await see(conversation.exchange(echo('x')));
      order.push(failure(end));
      assert.equal(order, [
        { reason: 'it forgot the session', isExpected: false },
        { code: 'BACKEND_UNAVAILABLE', delivered: 'no' },
      ]);
      conversation.messages$.subscribe({ complete: () => listening.push('completed') });
      assert.equal(listening, ['completed']);
      const late = await see(conversation.exchange(echo('late')));
      assert.equal(failure(late.end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
      await conversation.close();
      assert.is(verbs(server, 'DELETE'), 0);
      // The transport itself continues in a new session.
      assert.is(textOf((await see(gatewayExchange(transport, echo('own')))).events[0]), 'own');
      const later = server.count('initialize');
      assert.is(later, initialized + 1);
    });
  });
}

test('ends when the listening stream is refused for a lost session', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const conversation = await openFor(transport);
    const closings = closingsOf(conversation);
    conversation.messages$.subscribe();
    await until(() => openStreams(server) === 2, 'the client listens');
    server.forgetSessions();
    await until(() => closings.length === 1, 'it is closed');
    assert.equal(closings, [{ reason: 'it forgot the session', isExpected: false }]);
  });
});

test('closing deletes its own session only', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const [own] = server.sessions.keys();
    const conversation = await openFor(transport);
    assert.is(server.sessions.size, 2);
    await conversation.close();
    assert.equal([...server.sessions.keys()], [own]);
    await Promise.all([openFor(transport), openFor(transport)]);
    await transport.close();
    assert.is(server.sessions.size, 0);
  });
});

test('an opening fails when it is aborted, or when the transport closes', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const stop = new AbortController();
    const initializations = () => server.count('initialize');
    server.failNext('never', { method: 'initialize' });
    const opening = transport
      .openConversation({ profile: everyCapability, signal: stop.signal })
      .catch(({ message }) => message);
    await until(() => initializations() === 2, 'it asked');
    stop.abort();
    assert.match(await opening, 'cancelled');
    server.failNext('never', { method: 'initialize' });
    const other = openFor(transport).catch(({ code, delivered }) => [code, delivered]);
    await until(() => initializations() === 3, 'it asked again');
    await transport.close();
    assert.equal(await other, ['BACKEND_UNAVAILABLE', 'no']);
  });
});

test('a failed opening does not wait until the session that it was given is deleted', async () => {
  const sessions: string[] = [];
  const seen: string[] = [];
  const listener: RequestListener = async (request, response) => {
    const { id = null, method = request.method } = await messageOf(request);
    const session = String(request.headers['mcp-session-id']);
    seen.push(`${method} ${session}`);
    if (method === 'initialize') {
      const result = { protocolVersion: '2025-11-25', capabilities: {} };
      const name = `s${sessions.push('')}`;
      answerJson(response, 200, { jsonrpc: '2.0', id, result }, { 'mcp-session-id': name });
    } else if (session !== 's2') response.writeHead(method === 'GET' ? 405 : 202).end(); // else never
  };
  await withRawTransport(listener, async (transport) => {
    const stop = new AbortController();
    const opening = transport
      .openConversation({ profile: everyCapability, signal: stop.signal })
      .catch(({ message }) => message);
    await until(() => seen.includes('notifications/initialized s2'), 'it was given a session');
    const abortedAt = performance.now();
    stop.abort();
    assert.match(await opening, 'cancelled');
    assert.ok(performance.now() - abortedAt < LIMITS.backgroundMs / 2);
    await until(() => seen.includes('DELETE s2'), 'the session is being deleted');
  });
});

test('streams of clients take no connection away from the calls', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const most = LIMITS.inFlightPerInstance + LIMITS.callsAwaitingClient + 8; // to spare
    const clients = 40;
    const conversations = await Promise.all(Array.from({ length: clients }, () => openFor(transport)));
    const subscriptions = conversations.map(({ messages$ }) => messages$.subscribe());
    await until(() => openStreams(server) === clients + 1, 'all listen');
    assert.ok(server.connections < most);
    assert.is(textOf((await see(transport.exchange(echo('x')))).events[0]), 'x');
    for (const subscription of subscriptions) subscription.unsubscribe();
    await until(() => openStreams(server) === 1, 'the streams are closed');
  });
});

test('drops notifications while 32 of them are unanswered, and after its end', async () => {
  await withBackend({}, async ({ transport, server }) => {
    const conversation = await openFor(transport);
    const notify = () => conversation.notify('notifications/roots/list_changed', {});
    const reported = () => server.count('notifications/roots/list_changed');
    for (let count = 0; count < 64; count += 1) notify();
    await until(() => reported() >= 32, 'they arrived');
    await conversation.close();
    notify();
    await see(transport.exchange(echo('x')));
    assert.is(reported(), 32);
  });
});

test.run();
