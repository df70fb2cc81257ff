// Which HTTP answers are evidence of an era, which are failures, and what is remembered of a handshake.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import type { Era } from '../../../src/domain/mcp.ts';
import { HttpConnection } from '../../../src/transports/http/http-connection.ts';
import { HttpHandshake, type HttpHandshakeOptions } from '../../../src/transports/http/http-handshake.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, withRawServer } from '../raw-server.ts';

const test = suite('http handshake');

const plain =
  (status: number, body = ''): RequestListener =>
  (_, response) =>
    void response.writeHead(status).end(body);

async function withHandshake(
  listener: RequestListener,
  body: (handshake: HttpHandshake, controller: AbortController) => Promise<void>,
  { discoverMs = 5_000, ...more }: Partial<Omit<HttpHandshakeOptions, 'signal'>> = {},
): Promise<void> {
  await withRawServer(listener, async ({ url }) => {
    const connection = new HttpConnection({ endpoint: url, headers: {}, deniedNetworks: [] });
    const controller = new AbortController();
    try {
      const options = { signal: controller.signal, discoverMs, known: undefined, ...more };
      await body(new HttpHandshake(connection, options), controller);
    } finally {
      await connection.destroy();
    }
  });
}

async function ask(listener: RequestListener, era: Era, known?: Era) {
  let outcome: unknown;
  const asking = async (handshake: HttpHandshake): Promise<void> => {
    outcome = await handshake.request({ method: era === 'modern' ? 'server/discover' : 'initialize' }, era);
  };
  await withHandshake(listener, asking, { known });
  return outcome;
}

test('fails on what is no evidence of an era', async () => {
  for (const status of [401, 403, 407, 429, 502, 503, 504, 302]) {
    await withHandshake(plain(status), async (handshake) => {
      for (const era of ['modern', 'legacy'] as const) {
        const error = await errorOf(handshake.request({ method: 'initialize' }, era));
        assert.match(error.message, String(status));
      }
    });
  }
});

test('fails on a server that returns what it is sent', async () => {
  const echo: RequestListener = async (request, response) =>
    answerJson(response, 200, await messageOf(request));
  for (const era of ['modern', 'legacy'] as const) {
    await withHandshake(echo, async (handshake) => {
      const asking = handshake.request({ method: era === 'modern' ? 'server/discover' : 'initialize' }, era);
      assert.match((await errorOf(asking)).message, 'it returns what it is sent');
    });
  }
});

test('says which path refused, without its query, and with which status', async () => {
  await withRawServer(plain(404), async ({ url }) => {
    const endpoint = String(new URL('/x/sse/?key=secret', url));
    const connection = new HttpConnection({ endpoint, headers: {}, deniedNetworks: [] });
    const { signal } = new AbortController();
    const handshake = new HttpHandshake(connection, { signal, discoverMs: 5_000, known: undefined });
    const answer = await handshake.request({ method: 'initialize' }, 'legacy');
    assert.equal(answer, { kind: 'none', detail: 'POST /x/sse/ was answered with HTTP 404' });
    assert.is(handshake.initializeStatus, 404);
    await connection.destroy();
  });
});

test('takes the answer to its id, and does not wait for the end of the stream', async () => {
  const [other, own] = [7, 1].map((id) => `data: {"jsonrpc":"2.0","id":${id},"result":{"id":${id}}}\n\n`);
  const listener: RequestListener = (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`${other}${own}`);
  const answer = await ask(listener, 'legacy');
  assert.equal(Object(answer).result.value, { id: 1 });
});

test.run();
