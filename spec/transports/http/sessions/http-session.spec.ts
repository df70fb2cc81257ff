// Sessions that backends forget: noticed, replaced once for all calls, the call repeated once. Against the fixture.

import type { ServerResponse } from 'node:http';
import { NEVER } from 'rxjs';
import * as assert from 'uvu/assert';
import { gatewayExchange } from '../../../../src/transports/gateway-requests.ts';
import { openHttp } from '../../../../src/transports/http/http.ts';
import { callTool, failure, see, textOf } from '../../../conformance/transport.ts';
import { startHttpServer } from '../../../fixtures/http-server.ts';
import { PLAIN } from '../../../helpers/backends/profiles.ts';
import { until } from '../../../helpers/eventually.ts';
import { suite } from '../../../helpers/suite.ts';
import { passTurns } from '../../../helpers/time/turns.ts';
import { answerJson, messageOf } from '../../raw-server.ts';
import { type Answer, type Answers, result, SESSION, serving, status } from '../../scripted-server.ts';
import { httpDefinition, openOptions, withBackend, withRawTransport } from '../open-http.ts';

const test = suite('http session');

const echo = (text: string) => callTool('echo', { text });

for (const unknownSession of [404, 400] as const) {
  test(`opens a lost session again and repeats the call (${unknownSession})`, async () => {
    await withBackend({ unknownSession }, async ({ transport, server }) => {
      const [old] = server.sessions.keys();
      server.forgetSessions();
      const { events, end } = await see(gatewayExchange(transport, echo('hello')));
      assert.is(end, 'completed');
      assert.is(textOf(events[0]), 'hello');
      for (const method of ['initialize', 'notifications/initialized', 'tools/call'])
        assert.is(server.count(method), 2);
      assert.is(server.sessions.size, 1);
      assert.not.ok(server.sessions.has(String(old)));
    });
  });
}

test('a request that the server refused before any work is not sent again by its conversation', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.forgetSessions();
    const { end } = await see(transport.exchange(echo('hello')));
    const facts = end === 'completed' ? undefined : end.facts;
    assert.equal([failure(end), facts?.isRepaired], [{ code: 'BACKEND_UNAVAILABLE', delivered: 'no' }, true]);
    assert.is(server.count('tools/call'), 1);
    assert.is(server.sessions.size, 1);
  });
});

test('the time that a start left for the first handshake, even a fraction, does not bound later ones', async () => {
  const server = await startHttpServer();
  const options = openOptions({ handshakeTimeoutMs: 900 });
  const transport = await openHttp(httpDefinition(server.url), options, 499.5);
  server.forgetSessions();
  server.failNext('never', { method: 'initialize' });
  const startMs = performance.now();
  await see(gatewayExchange(transport, echo('hello')));
  assert.ok(performance.now() - startMs > 850);
  await Promise.all([transport.close(), server.close()]);
});

test('shares one handshake among all calls that lost the same session', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.forgetSessions();
    const numbers = Array.from({ length: 50 }, (_, index) => String(index));
    const all = await Promise.all(numbers.map((text) => see(gatewayExchange(transport, echo(text)))));
    const found = all.map(({ events }) => textOf(events[0]));
    assert.equal(found, numbers);
    assert.is(server.count('initialize'), 2);
    assert.is(server.sessions.size, 1);
  });
});

test('a call that loses its session twice, or gets no new one, is undelivered; the next call works', async () => {
  await withBackend({}, async ({ transport, server }) => {
    for (const isTwice of [true, false]) {
      if (isTwice) server.failNext('404', { method: 'tools/call', times: 2 });
      else server.failNext('503', { method: 'initialize' });
      if (!isTwice) server.forgetSessions();
      const { end } = await see(gatewayExchange(transport, echo('hello')));
      assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
      assert.is(server.count('initialize'), isTwice ? 2 : 3);
      assert.is(textOf((await see(gatewayExchange(transport, echo('next')))).events[0]), 'next');
    }
  });
});

test('a server that refuses calls, pings and handshakes for a while ends the session of no client', async () => {
  let isRefusing = false;
  const unless =
    (answer: Answer): Answer =>
    (response, asked) =>
      (isRefusing ? status(429) : answer)(response, asked);
  const answers: Answers = {
    initialize: unless(result({ protocolVersion: '2025-11-25', capabilities: {} }, SESSION)),
    'tools/call': unless(result({ content: [] })),
    ping: unless(result({})),
  };
  await withRawTransport(serving(answers), async (transport) => {
    const { signal } = new AbortController();
    const own = await transport.openConversation({ profile: PLAIN, signal });
    for (const conversation of [transport, own]) {
      isRefusing = true;
      const refused = await see(conversation?.exchange(echo('x')) ?? NEVER);
      assert.match(String(refused.end), 'answered 429');
      isRefusing = false;
      assert.is((await see(conversation?.exchange(echo('x')) ?? NEVER)).end, 'completed');
    }
  });
});

test('a session that is found lost when its conversation has ended is not replaced', async () => {
  const asked: string[] = [];
  const ping = Promise.withResolvers<void>();
  const deletion = Promise.withResolvers<void>();
  const after =
    (promise: Promise<void>, answer: Answer): Answer =>
    (response, message) =>
      promise.then(() => answer(response, message));
  const answers: Answers = {
    initialize: result({ protocolVersion: '2025-11-25', capabilities: {} }, SESSION),
    'tools/call': status(403),
    ping: after(ping.promise, status(403)),
    DELETE: after(deletion.promise, status(200)),
  };
  await withRawTransport(serving(answers, asked), async (transport) => {
    const call = see(transport.exchange(echo('x')));
    await until(() => asked.includes('ping'));
    const closed = transport.close();
    assert.is(failure((await call).end)?.code, 'BACKEND_UNAVAILABLE');
    await until(() => asked.includes('DELETE'));
    ping.resolve();
    await passTurns(100);
    deletion.resolve();
    await closed;
    assert.is(asked.at(-1), 'DELETE');
  });
});

test('drops requests of a backend that does not accept replies, and replies again once it does', async () => {
  const replies: { id: unknown; response: ServerResponse }[] = [];
  const pings = Array.from(
    { length: 200 },
    (_, id) => `data: {"jsonrpc":"2.0","id":${id},"method":"ping"}\n\n`,
  );
  await withRawTransport(
    async (request, response) => {
      const { id, method } = await messageOf(request);
      if (method === undefined) replies.push({ id, response });
      else if (method === 'ping') answerJson(response, 200, { jsonrpc: '2.0', id, result: {} });
      else if (method !== 'tools/call') response.writeHead(400).end();
      else {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(`${pings.join('')}data: {"jsonrpc":"2.0","id":${id},"result":{}}\n\n`);
      }
    },
    async (transport) => {
      assert.is((await see(transport.exchange(echo('x')))).end, 'completed');
      await until(() => replies.length === 64, 'the replies arrived');
      assert.is((await see(transport.exchange(echo('x')))).end, 'completed');
      assert.is(replies.length, 64);
      for (const { response } of replies) response.writeHead(202).end();
      await until(async () => {
        await see(transport.exchange(echo('x')));
        return replies.length > 64;
      }, 'it replies again');
      for (const { response } of replies) response.end();
    },
  );
});

test.run();
