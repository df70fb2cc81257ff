// Sessions that backends forget: noticed, opened again once for everybody, the call repeated once. Against the fixture.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { callTool, failure, see, startAndUnsubscribe, textOf, until } from '../../conformance/transport.ts';
import type { HttpFixture } from '../../fixtures/http-server.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf } from '../raw-server.ts';
import { withBackend, withRawTransport } from './open-http.ts';

const test = suite('http session');

const verbs = (server: HttpFixture, verb: string) =>
  server.requests.filter((request) => request.verb === verb);
const echo = (text: string) => callTool('echo', { text });

for (const unknownSession of [404, 400] as const) {
  test(`opens a lost session again and repeats the call (${unknownSession})`, async () => {
    await withBackend({ unknownSession }, async ({ transport, server }) => {
      const [old] = server.sessions.keys();
      server.forgetSessions();
      const { events, end } = await see(transport.exchange(echo('hello')));
      assert.is(end, 'completed');
      assert.is(textOf(events[0]), 'hello');
      assert.is(server.count('initialize'), 2);
      assert.is(server.count('notifications/initialized'), 2);
      assert.is(server.count('tools/call'), 2);
      assert.is(server.sessions.size, 1);
      assert.not.ok(server.sessions.has(String(old)));
    });
  });
}

test('opens a lost session again when a part of the time was used before, as for a program that was not listening yet', async () => {
  const open = { handshakeTimeoutMs: 4_999.5 };
  await withBackend(
    {},
    async ({ transport, server }) => {
      server.forgetSessions();
      assert.is(textOf((await see(transport.exchange(echo('hello')))).events[0]), 'hello');
    },
    { open },
  );
});

test('shares one handshake among all calls that lost the same session', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.forgetSessions();
    const numbers = Array.from({ length: 50 }, (_, index) => String(index));
    const all = await Promise.all(numbers.map((text) => see(transport.exchange(echo(text)))));
    assert.equal(
      all.map(({ events }) => textOf(events[0])),
      numbers,
    );
    assert.is(server.count('initialize'), 2);
    assert.is(server.sessions.size, 1);
  });
});

test('lets the second refusal stand, undelivered, and serves the next call', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.failNext('404', { method: 'tools/call', times: 2 });
    const { end } = await see(transport.exchange(echo('hello')));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    assert.is(server.count('initialize'), 2);
    assert.is(textOf((await see(transport.exchange(echo('next')))).events[0]), 'next');
  });
});

test('fails undelivered when no new session can be opened, and tries again with the next call', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.forgetSessions();
    server.failNext('503', { method: 'initialize' });
    const { end } = await see(transport.exchange(echo('hello')));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    assert.is(textOf((await see(transport.exchange(echo('next')))).events[0]), 'next');
  });
});

test('does not take other refusals for a lost session', async () => {
  await withBackend({}, async ({ transport, server }) => {
    for (const how of ['401', '500', '503', 'redirect'] as const) {
      server.failNext(how, { method: 'tools/call' });
      await see(transport.exchange(echo('hello')));
    }
    assert.is(server.count('initialize'), 1);
  });
});

test('never initializes a server without sessions again', async () => {
  await withBackend({ sessions: false }, async ({ transport, server }) => {
    server.failNext('404', { method: 'tools/call' });
    const { end } = await see(transport.exchange(echo('hello')));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    assert.is(server.count('initialize'), 1);
    assert.ok(verbs(server, 'POST').every(({ headers }) => headers['mcp-session-id'] === undefined));
  });
});

test('says goodbye to the present session when it is closed', async () => {
  await withBackend({}, async ({ transport, server }) => {
    server.forgetSessions();
    await see(transport.exchange(echo('hello')));
    const [present] = server.sessions.keys();
    await transport.close();
    assert.equal(
      verbs(server, 'DELETE').map(({ headers }) => headers['mcp-session-id']),
      [present],
    );
    assert.is(server.sessions.size, 0);
  });
});

test('sends session and revision with every request, and a call that gave up waiting is not sent again', async () => {
  await withBackend({ answers: 'sse' }, async ({ transport, server }) => {
    const [session] = server.sessions.keys();
    await see(transport.exchange(echo('hello')));
    await startAndUnsubscribe(transport.exchange(callTool('progress', { steps: 1_000, ms: 1 })));
    await see(transport.exchange(echo('again')));
    const after = server.requests.filter(
      ({ message }) => !/initialize$|discover$/.test(message?.method ?? ''),
    );
    assert.ok(after.length >= 4);
    for (const { headers } of after) {
      assert.is(headers['mcp-session-id'], session);
      assert.is(headers['mcp-protocol-version'], '2025-11-25');
    }
  });
});

test('never uses a request id twice, whatever session it belongs to', async () => {
  await withBackend({}, async ({ transport, server }) => {
    await see(transport.exchange(echo('one')));
    server.forgetSessions();
    await see(transport.exchange(echo('two')));
    const answered = server.requests.filter(({ message }) => message?.id !== undefined);
    const keys = answered.map(({ headers, message }) => `${headers['mcp-session-id']} ${message?.id}`);
    assert.is(new Set(keys).size, keys.length);
  });
});

test('drops requests of a backend that does not take the answers, and goes on when it does', async () => {
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
      await until(() => replies.length === LIMITS.repliesUnderWay, 'the replies arrived');
      assert.is((await see(transport.exchange(echo('x')))).end, 'completed');
      assert.is(replies.length, LIMITS.repliesUnderWay);
      for (const { response } of replies) response.writeHead(202).end();
      await until(async () => {
        await see(transport.exchange(echo('x')));
        return replies.length > LIMITS.repliesUnderWay;
      }, 'it replies again');
      for (const { response } of replies) response.end();
    },
  );
});

test.run();
