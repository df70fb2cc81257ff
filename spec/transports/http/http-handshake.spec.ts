// Which HTTP answers are evidence of an era, which are failures, and what is remembered of a handshake.

import type { RequestListener } from 'node:http';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { Era } from '../../../src/domain/mcp.ts';
import { HttpConnection } from '../../../src/transports/http/http-connection.ts';
import { HttpHandshake, type HttpHandshakeOptions } from '../../../src/transports/http/http-handshake.ts';
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

async function failureOf(promise: Promise<unknown>): Promise<GatewayError> {
  const outcome = await promise.catch((error: unknown) => error);
  if (outcome instanceof GatewayError) return outcome;
  throw new Error('it did not fail as it should');
}

async function ask(listener: RequestListener, era: Era, known?: Era) {
  let outcome: unknown;
  const asking = async (handshake: HttpHandshake): Promise<void> => {
    outcome = await handshake.request({ method: era === 'modern' ? 'server/discover' : 'initialize' }, era);
  };
  await withHandshake(listener, asking, { known });
  return outcome;
}

test('takes a refusal of the method as an answer, with its JSON-RPC error when it has one', async () => {
  const error = { code: -32000, message: 'Bad Request: Server not initialized' };
  const refusing: RequestListener = (_, response) =>
    answerJson(response, 400, { jsonrpc: '2.0', id: null, error });
  assert.equal(await ask(refusing, 'modern'), { kind: 'error', id: null, error });
  for (const status of [400, 404, 405, 406, 500, 501]) {
    assert.equal(await ask(plain(status, '<h1>No</h1>'), 'legacy'), {
      kind: 'none',
      lack: `POST /mcp was answered with HTTP ${status}`,
    });
  }
});

test('fails on what is no evidence of an era', async () => {
  for (const status of [401, 403, 407, 429, 502, 503, 504, 302]) {
    await withHandshake(plain(status), async (handshake) => {
      for (const era of ['modern', 'legacy'] as const) {
        const error = await failureOf(handshake.request({ method: 'initialize' }, era));
        assert.match(error.message, String(status));
      }
    });
  }
});

test('takes nonsense for an unknown method when asking in the modern era, for a failure otherwise', async () => {
  const nonsense = { kind: 'none', lack: 'POST /mcp answered 200 with an empty body' };
  assert.equal(await ask(plain(200), 'modern'), nonsense);
  await withHandshake(plain(200), async (handshake) => {
    const error = await failureOf(handshake.request({ method: 'initialize' }, 'legacy'));
    assert.match(error.message, 'empty body');
  });
});

test('takes nonsense of a server that is known as a modern one for an unknown method', async () => {
  const nonsense = { kind: 'none', lack: 'POST /mcp answered 200 with an empty body' };
  assert.equal(await ask(plain(200), 'legacy', 'modern'), nonsense);
  assert.match((await failureOf(ask(plain(200), 'legacy', 'legacy'))).message, 'empty body');
});

test('takes a fault of a server that is known for no refusal, unless it says so', async () => {
  const refusing =
    (code: number): RequestListener =>
    (_, response) =>
      answerJson(response, 500, { jsonrpc: '2.0', id: null, error: { code, message: 'no' } });
  for (const known of ['modern', 'legacy'] as const) {
    for (const listener of [plain(500), plain(501), refusing(-32603)]) {
      const error = await failureOf(ask(listener, 'legacy', known));
      assert.match(error.message, /answered 50[01]/);
      assert.is(error.facts.suspicious, true);
    }
    const unknown = { kind: 'error', id: null, error: { code: -32601, message: 'no' } };
    assert.equal(await ask(refusing(-32601), 'legacy', known), unknown);
  }
});

test('takes a server that never answers discover for one that does not know it', async () => {
  await withHandshake(
    () => {},
    async (handshake) => {
      assert.equal(await handshake.request({ method: 'server/discover' }, 'modern'), {
        kind: 'none',
        lack: 'server/discover was not answered',
      });
    },
    { discoverMs: 50 },
  );
});

test('takes one that never answers initialize for one that does not know it, where that is to be found out', async () => {
  await withHandshake(
    () => {},
    async (handshake) => {
      const lack = 'initialize was not answered';
      assert.equal(await handshake.request({ method: 'initialize' }, 'legacy'), { kind: 'none', lack });
      const error = await failureOf(handshake.request({ method: 'server/discover' }, 'modern'));
      assert.is(error.facts.reason, 'server/discover was not answered', 'which it knows');
    },
    { initializeMs: 50, discoverMs: 50, known: 'modern' },
  );
});

test('fails on a server that returns what it is sent', async () => {
  const echo: RequestListener = async (request, response) =>
    answerJson(response, 200, await messageOf(request));
  for (const era of ['modern', 'legacy'] as const) {
    await withHandshake(echo, async (handshake) => {
      const asking = handshake.request({ method: era === 'modern' ? 'server/discover' : 'initialize' }, era);
      assert.match((await failureOf(asking)).message, 'it returns what it is sent');
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
    assert.equal(answer, { kind: 'none', lack: 'POST /x/sse/ was answered with HTTP 404' });
    assert.is(handshake.initializeStatus, 404);
    await connection.destroy();
  });
});

test('fails when the signal ends the wait', async () => {
  const arrived = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  await withHandshake(
    (_, response) => {
      response.on('close', gone.resolve);
      arrived.resolve();
    },
    async (handshake, controller) => {
      const asking = failureOf(handshake.request({ method: 'server/discover' }, 'modern'));
      await arrived.promise;
      controller.abort();
      const { code, delivered } = await asking;
      assert.equal([code, delivered], ['BACKEND_UNAVAILABLE', 'unknown']);
      await gone.promise;
    },
  );
});

test('takes the answer to its id, and does not wait for the end of the stream', async () => {
  const [other, own] = [7, 1].map((id) => `data: {"jsonrpc":"2.0","id":${id},"result":{"id":${id}}}\n\n`);
  const listener: RequestListener = (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`${other}${own}`);
  const answer = await ask(listener, 'legacy');
  assert.equal(Object(answer).result.value, { id: 1 });
});

test('remembers session and revision of initialize, and sends both with the notification', async () => {
  const seen: (string | undefined)[][] = [];
  const listener: RequestListener = async (request, response) => {
    const { 'mcp-session-id': session, 'mcp-protocol-version': version } = request.headers;
    const { id, method } = await messageOf(request);
    seen.push([String(method), String(session), String(version)]);
    if (id === undefined) response.writeHead(202).end();
    else {
      const result = { protocolVersion: '2025-03-26', capabilities: {} };
      answerJson(response, 200, { jsonrpc: '2.0', id, result }, { 'mcp-session-id': 'abc' });
    }
  };
  await withHandshake(listener, async (handshake) => {
    await handshake.request({ method: 'initialize', params: {} }, 'legacy');
    await handshake.notify('notifications/initialized', {});
    assert.is(handshake.sessionId, 'abc');
  });
  assert.equal(seen, [
    ['initialize', 'undefined', 'undefined'],
    ['notifications/initialized', 'abc', '2025-03-26'],
  ]);
});

test('sends the headers of the modern era with discover', async () => {
  let headers: Record<string, unknown> = {};
  const listener: RequestListener = (request, response) => {
    headers = request.headers;
    response.end();
  };
  await withHandshake(listener, async (handshake) => {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    await handshake.request({ method: 'server/discover', params: { _meta } }, 'modern');
  });
  assert.is(headers['mcp-protocol-version'], '2026-07-28');
  assert.is(headers['mcp-method'], 'server/discover');
});

test('does not mind a refused notification, but a broken connection', async () => {
  await withHandshake(plain(400), (handshake) => handshake.notify('notifications/initialized', {}));
  await withHandshake(
    (_, response) => response.socket?.resetAndDestroy(),
    async (handshake) => {
      assert.is(
        (await failureOf(handshake.notify('notifications/initialized', {}))).code,
        'BACKEND_UNAVAILABLE',
      );
    },
  );
});

test.run();
