// What goes over the wire to a backend: its own host and headers, the protocol's, and nothing else.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { codeOf } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { AnswerEnding } from '../../../src/transports/http/answers/answer-ending.ts';
import { HttpAnswer } from '../../../src/transports/http/answers/http-answer.ts';
import { type Headers, HttpEndpoint } from '../../../src/transports/http/http-endpoint.ts';
import { until } from '../../helpers/eventually.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
import { suite } from '../../helpers/suite.ts';
import { withRawServer } from '../raw-server.ts';

const test = suite('http endpoint');
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';

type Send = (endpoint: HttpEndpoint, answer: HttpAnswer) => void;

/** What a server sees of one request. */
async function seenBy(
  send: Send,
  headers: Headers = {},
  query = '',
): Promise<IncomingMessage & { host: string }> {
  let seen: IncomingMessage | undefined;
  let host = '';
  await withRawServer(
    (request, response) => {
      seen = request;
      response.end();
    },
    async ({ url }) => {
      host = new URL(url).host;
      const endpoint = new HttpEndpoint(
        { endpoint: url + query, headers },
        { isDenied: () => false, clock: systemClock },
      );
      await new Promise<void>((finished) => {
        send(endpoint, new HttpAnswer({ message: () => {}, finished: () => finished() }));
      });
      endpoint.destroy();
    },
  );
  if (seen === undefined) throw new Error('nothing arrived');
  return Object.assign(seen, { host });
}

test('posts with exactly the headers of HTTP, MCP and the definition, which sets none of the protocol', async () => {
  const seen = await seenBy(
    (endpoint, answer) => endpoint.post('{"a":1}', { 'mcp-method': 'ping' }, answer),
    {
      Authorization: 'Bearer backend',
      'X-Team': 'blue',
      Host: 'elsewhere.example',
      Accept: 'text/html',
      'Content-Type': 'text/plain',
      'Content-Length': '999',
      'Transfer-Encoding': 'chunked',
      Connection: 'close',
      'Mcp-Session-Id': 'stolen',
      'Accept-Encoding': 'gzip',
    },
  );
  assert.equal(seen.headers, {
    host: seen.host,
    connection: 'keep-alive',
    'content-length': '7',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: 'Bearer backend',
    'x-team': 'blue',
    'mcp-method': 'ping',
  });
});

for (const [name, value] of [
  ['x', 'a\r\nb: c'],
  ['x', 'a\0'],
  ['x', '\u0100'],
  ['x y', 'a'],
  ['', 'a'],
] as const) {
  test(`sends no request with the header ${JSON.stringify([name, value])}`, async () => {
    const connect = { endpoint: 'http://127.0.0.1:1/mcp', headers: { [name]: value } };
    const endpoint = new HttpEndpoint(connect, { isDenied: () => false, clock: systemClock });
    const ending = await new Promise<AnswerEnding>((finished) => {
      endpoint.post('{}', {}, new HttpAnswer({ message: () => {}, finished }));
    });
    const failure = ending.kind === 'broken' ? ending.failure : undefined;
    assert.equal([failure?.delivered, codeOf(failure?.cause)], ['no', 'ERR_INVALID_CHAR']);
    endpoint.destroy();
  });
}

test('a body with other characters than ASCII arrives as it is, with its length in bytes', async () => {
  const body = '{"a":"caf\u00e9 \u{1f600}"}';
  const seen: unknown[] = [];
  await withRawServer(
    async (request, response) => {
      seen.push(request.headers['x-name'], request.headers['content-length'], await text(request));
      response.end();
    },
    async ({ url }) => {
      const definition = { endpoint: url, headers: { 'x-name': 'caf\u00e9' } };
      const endpoint = new HttpEndpoint(definition, { isDenied: () => false, clock: systemClock });
      await new Promise((finished) => {
        endpoint.post(body, {}, new HttpAnswer({ message: () => {}, finished }));
      });
      endpoint.destroy();
    },
  );
  assert.equal(seen, ['caf\u00e9', String(Buffer.byteLength(body)), body]);
});

test('posts to another path of its origin, and resolves no path of another origin', async () => {
  const seen = await seenBy((endpoint, answer) => endpoint.post('{}', {}, answer, { path: '/message?s=1' }));
  assert.is(seen.url, '/message?s=1');
  const definition = { endpoint: 'http://h:1/a/sse?k=v', headers: {} };
  const endpoint = new HttpEndpoint(definition, { isDenied: () => false, clock: systemClock });
  const paths = [
    '/m?s=1',
    'm',
    '?s=2',
    'http://h:1/x#y',
    'http://H:1/',
    'http://h/',
    'https://h:1/',
    '//e/m',
    'http://',
  ];
  assert.equal(
    paths.map((path) => endpoint.pathOf(path)),
    ['/m?s=1', '/a/m', '/a/sse?s=2', '/x', '/', undefined, undefined, undefined, undefined],
  );
  endpoint.destroy();
});

test('ends lasting streams when it is destroyed, and leaves none behind when one ends by itself', async () => {
  const open = new Set<unknown>();
  await withRawServer(
    (request, response) => {
      open.add(response);
      response.on('close', () => open.delete(response));
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      if (request.method === 'POST') response.end();
    },
    async ({ url }) => {
      const endpoint = new HttpEndpoint(
        { endpoint: url, headers: {} },
        { isDenied: () => false, clock: systemClock },
      );
      const endings: string[] = [];
      const sink = {
        message: () => {},
        finished: ({ kind }: { kind: string }) => endings.push(kind),
      };
      const withdrawn = new HttpAnswer(sink);
      endpoint.get({}, withdrawn, { isLasting: true });
      endpoint.get({}, new HttpAnswer(sink), { isLasting: true });
      endpoint.post('{}', {}, new HttpAnswer(sink), { isLasting: true });
      await until(() => open.size === 2 && endings.length === 1, 'one ended');
      withdrawn.abort();
      await until(() => open.size === 1, 'one was withdrawn');
      endpoint.destroy();
      await until(() => open.size === 0, 'none is left');
      assert.equal(endings, ['complete', 'broken']);
    },
  );
});

test('a destroyed endpoint opens no stream', async () => {
  for (const isLasting of [false, true]) {
    const endpoint = new HttpEndpoint(
      { endpoint: 'http://127.0.0.1:1/mcp', headers: {} },
      { isDenied: () => false, clock: systemClock },
    );
    endpoint.destroy();
    const ending = await new Promise<AnswerEnding>((finished) => {
      endpoint.get({}, new HttpAnswer({ message: () => {}, finished }), { isLasting });
    });
    const failure = ending.kind === 'broken' ? ending.failure : undefined;
    assert.equal([failure?.delivered, codeOf(failure?.cause)], ['no', 'ECONNABORTED']);
  }
});

test('a connection that is being made ends with the endpoint', async () => {
  const endpoint = new HttpEndpoint(
    { endpoint: 'http://192.0.2.1/mcp', headers: {} },
    { isDenied: () => false, clock: systemClock },
  );
  const ended = new Promise<string>((resolve) => {
    endpoint.post('{}', {}, new HttpAnswer({ message: () => {}, finished: ({ kind }) => resolve(kind) }));
  });
  const startMs = performance.now();
  endpoint.destroy();
  assert.is(await ended, 'broken');
  assert.ok(performance.now() - startMs < LIMITS.connectMs / 2);
});

test('a connection that was closed leaves nothing behind', async () => {
  const sockets: WeakRef<object>[] = [];
  const note = (message: unknown): void =>
    void sockets.push(new WeakRef((message as { socket: object }).socket));
  subscribe('net.client.socket', note);
  await withRawServer(
    (request, response) => {
      request.resume();
      response.writeHead(200, { connection: 'close' }).end(RESULT);
    },
    async ({ url }) => {
      const endpoint = new HttpEndpoint(
        { endpoint: url, headers: {} },
        { isDenied: () => false, clock: systemClock },
      );
      for (let made = 0; made < 50; made += 1) {
        await new Promise<void>((resolve) => {
          endpoint.post('{}', {}, new HttpAnswer({ message: () => {}, finished: () => resolve() }));
        });
      }
      await delay(100);
      collectGarbage();
      await delay(10);
      collectGarbage();
      const left = sockets.filter((socket) => socket.deref() !== undefined).length;
      assert.is(sockets.length, 50);
      assert.ok(left < 5, `${left} of ${sockets.length} sockets are left`);
      endpoint.destroy();
    },
  );
  unsubscribe('net.client.socket', note);
});

test.run();
