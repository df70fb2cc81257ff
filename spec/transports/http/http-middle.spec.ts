// Servers of both HTTP transports behind routers, proxies and balancers: the conformance suite, and what each of them does.

import type { RequestListener } from 'node:http';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { open as http } from '../../../src/transports/http/http.ts';
import { open as sse } from '../../../src/transports/sse/sse.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { conversationConformance, noCapability, openFor } from '../../conformance/conversation.ts';
import { callTool, refusal, see, textOf, transportConformance } from '../../conformance/transport.ts';
import { type Middle, type MiddleOptions, startMiddle } from '../../fixtures/http-middle.ts';
import type { HttpServerOptions } from '../../fixtures/http-options.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { startSseServer } from '../../fixtures/sse-server.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, withRawServer } from '../raw-server.ts';
import { httpDefinition, openOptions, withRawTransport } from './open-http.ts';

const test = suite('http, in the middle', { timeoutMs: 60_000 });

type Kind = 'http' | 'sse';

interface Opened {
  readonly transport: Transport;
  readonly middle: Middle;
  release(): Promise<void>;
}

async function openThrough(
  kind: Kind,
  options: MiddleOptions,
  server: HttpServerOptions = {},
  count = 1,
): Promise<Opened> {
  const start = () => (kind === 'http' ? startHttpServer(server) : startSseServer());
  const servers = await Promise.all(Array.from({ length: count }, start));
  const middle = await startMiddle(servers, options);
  const release = async (): Promise<void> => {
    await middle.close();
    await Promise.all(servers.map((each) => each.close()));
  };
  try {
    const open = kind === 'http' ? http : sse;
    const transport = await open(httpDefinition(middle.url, { transport: kind }), openOptions());
    return { transport, middle, release };
  } catch (thrown) {
    await release();
    throw thrown;
  }
}

for (const kind of ['http', 'sse'] as const) {
  const options = { redirect: 307, coding: kind === 'http' ? 'br' : 'gzip', isSticky: true } as const;
  const subject = {
    name: `${kind}, in the middle`,
    open: () => openThrough(kind, options, { answers: 'sse' }),
  };
  transportConformance(test, subject);
  conversationConformance(test, subject);
}

/** Opens, calls once for all clients and once for one, and closes. */
async function assertWorks(kind: Kind, options: MiddleOptions, server?: HttpServerOptions): Promise<Middle> {
  const { transport, middle, release } = await openThrough(kind, options, server, 2);
  try {
    for (const text of ['one', 'two', 'three'])
      assert.is(textOf((await see(transport.exchange(callTool('echo', { text })))).events[0]), text);
    const conversation =
      transport.handshake.era === 'modern' ? transport : await openFor(transport, noCapability);
    for (const text of ['four', 'five'])
      assert.is(textOf((await see(conversation.exchange(callTool('echo', { text })))).events[0]), text);
    await conversation.close();
  } finally {
    await transport.close();
    await release();
  }
  return middle;
}

for (const coding of ['gzip', 'deflate', 'raw deflate', 'br', 'zstd'] as const) {
  test(`reads ${coding}`, async () => {
    for (const answers of ['json', 'sse'] as const)
      await assertWorks('http', { coding, isSticky: true }, { answers });
    await assertWorks('sse', { coding, isSticky: true });
  });
}

test('a redirect is followed once per request, with its method, body and headers', async () => {
  const middle = await assertWorks('http', { redirect: 307, isSticky: true });
  assert.is(middle.redirects, middle.passed.length);
  assert.ok(middle.passed.every(({ path }) => path === '/mcp/'));
  assert.ok(middle.passed.some(({ verb }) => verb === 'DELETE'));
});

test('reads an encoded stream of the modern era', async () => {
  await assertWorks('http', { coding: 'raw deflate', redirect: 308 }, { era: 'modern', answers: 'sse' });
});

test('a server that wraps every answer into an array works', async () => {
  for (const answers of ['json', 'sse'] as const)
    await assertWorks('http', { inArrays: true, isSticky: true }, { answers });
  await assertWorks('sse', { inArrays: true, isSticky: true });
});

test('each conversation finds the server of its session by its own cookie, which it loses at its end', async () => {
  const middle = await assertWorks('http', { isSticky: true });
  const cookies = middle.passed.map(({ cookie }) => cookie);
  // The first request of each conversation has none, and all others that of its server.
  assert.equal(
    cookies.flatMap((cookie, index) => (cookie === '' ? [index] : [])).length,
    2,
    JSON.stringify(middle.passed),
  );
  assert.equal(new Set(cookies), new Set(['', 'server=0', 'server=1']));
});

/** Answers `initialize`, and everything else by the listener. */
const initializing =
  (listener: (...args: [...Parameters<RequestListener>, id: unknown]) => void): RequestListener =>
  async (request, response) => {
    const { method, id } = await messageOf(request);
    if (request.method !== 'POST') response.writeHead(405).end();
    else if (method === 'server/discover') answerJson(response, 404, {});
    else if (method === 'initialize') answerJson(response, 200, { jsonrpc: '2.0', id, result: GREETING });
    else if (id === undefined) response.writeHead(202).end();
    else listener(request, response, id);
  };

const GREETING = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
};

async function calls(transport: Transport): Promise<GatewayError> {
  const { end } = await see(transport.exchange(callTool('echo', {})));
  if (end instanceof GatewayError) return end;
  throw new Error('the call did not fail');
}

test('no redirect leads to another origin, to a second place, or with another status', async () => {
  const places: [number, string, number][] = [
    [307, 'http://127.0.0.1:1/mcp', 1],
    [308, '//other.example/mcp', 1],
    [307, 'https://127.0.0.1/mcp', 1],
    [302, '/mcp/', 1],
    [301, '/mcp/', 1],
    [303, '/mcp/', 1],
    [307, '', 2],
    [307, '/mcp', 2],
    [308, '/mcp/again', 2],
  ];
  for (const [status, location, asked] of places) {
    let count = 0;
    const listener = initializing((_request, response) => {
      count += 1;
      response.writeHead(status, { location }).end('moved');
    });
    await withRawTransport(listener, async (transport) => {
      const error = await calls(transport);
      assert.match(error.message, `answered ${status}`);
      assert.is(error.delivered, 'no');
      assert.is(count, asked, location);
    });
  }
});

test('a redirect with an endless text is broken off', async () => {
  const listener = initializing((_request, response) => {
    response.writeHead(307, { location: '/mcp/' });
    response.write('x'.repeat(100_000));
  });
  await withRawTransport(listener, async (transport) => {
    assert.match((await calls(transport)).message, 'more than 65536 bytes');
  });
});

test('a redirect checks the address again', async () => {
  let isOver = false;
  const answer = initializing((_request, response) => {
    isOver = true;
    response.writeHead(307, { location: '/mcp/' }).end();
  });
  // No connection is used twice.
  const listener: RequestListener = (request, response) =>
    answer(request, response.setHeader('connection', 'close'));
  await withRawTransport(
    listener,
    async (transport) => assert.match((await calls(transport)).message, 'is not allowed'),
    { network: { isDenied: () => isOver } },
  );
});

const EMPTY_BLOCK = Buffer.from([0, 0, 0, 0xff, 0xff]);

const bombs: Readonly<Record<string, () => Buffer>> = {
  gzip: () => gzipSync(Buffer.alloc(LIMITS.backendMessageBytes + 1_000_000, ' ')),
  deflate: () => deflateRawSync(Buffer.alloc(LIMITS.backendMessageBytes + 1_000_000, ' ')),
  br: () => quickly(Buffer.alloc(LIMITS.backendMessageBytes + 1_000_000, '\n')),
  zstd: () => zstdCompressSync(Buffer.alloc(LIMITS.backendMessageBytes + 1_000_000, ' ')),
  'deflate, gzip': () => gzipSync(bombs.deflate?.() ?? ''),
  // Nothing comes out of the inner coding: an empty block follows the other.
  'deflate, br': () => quickly(Buffer.alloc(LIMITS.backendMessageBytes + 1_000_000, EMPTY_BLOCK)),
};
/** The usual quality takes seconds for these. */
function quickly(plain: Buffer): Buffer {
  return brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
}
for (const [coding, bytes] of Object.entries(bombs)) {
  test(`a bomb of ${coding} is refused when it is over the bound of a message`, async () => {
    const bomb = bytes();
    for (const type of ['application/json', 'text/event-stream']) {
      const listener = initializing((_request, response) => {
        response.writeHead(200, { 'content-type': type, 'content-encoding': coding }).end(bomb);
      });
      await withRawTransport(listener, async (transport) => {
        assert.match((await calls(transport)).message, `more than ${LIMITS.backendMessageBytes} bytes`);
      });
    }
  });
}

test('another encoding, and bytes that are not in the named one, are the cause of the failure', async () => {
  const causes: [string, RegExp][] = [
    ['compress', /answered in the encoding "compress"; the gateway reads plain bodies and up to 3 of gzip, /],
    ['gzip, exi', /answered in the encoding "gzip, exi"/],
    ['br, br, br, br', /answered in the encoding "br, br, br, br"/],
    ['gzip, br', /answered with a body that is not gzip, br/],
    ['zstd', /answered with a body that is not zstd/],
    ['gzip', /answered with a body that is not gzip \(Z_DATA_ERROR\)/],
    ['br', /answered with a body that is not br/],
  ];
  for (const [coding, cause] of causes) {
    const listener = initializing((_request, response, id) => {
      answerJson(response, 200, { jsonrpc: '2.0', id, result: {} }, { 'content-encoding': coding });
    });
    await withRawTransport(listener, async (transport) => {
      assert.match((await calls(transport)).message, cause);
    });
  }
  const always: RequestListener = (_request, response) =>
    answerJson(response, 200, {}, { 'content-encoding': 'compress' });
  await withRawServer(always, async ({ url }) => {
    const { message } = await refusal(http(httpDefinition(url), openOptions()));
    assert.match(message, 'answered in the encoding "compress"');
  });
});

for (const type of ['application/json', 'text/event-stream']) {
  test(`codings are undone in the reverse order, however they are written: ${type}`, async () => {
    const written: [string, (plain: Buffer) => Buffer][] = [
      ['gzip, br', (plain) => brotliCompressSync(gzipSync(plain))],
      ['br,gzip', (plain) => gzipSync(brotliCompressSync(plain))],
      ['X-GZIP , Identity', gzipSync],
      ['deflate, zstd, gzip', (plain) => gzipSync(zstdCompressSync(deflateSync(plain)))],
      ['ZSTD', zstdCompressSync],
    ];
    for (const [coding, encode] of written) {
      const listener = initializing((_request, response, id) => {
        const text = JSON.stringify({ jsonrpc: '2.0', id, result: { long: 'x'.repeat(300_000) } });
        const body = encode(Buffer.from(type === 'application/json' ? text : `data: ${text}\n\n`));
        response.writeHead(200, { 'content-type': type, 'content-encoding': coding });
        for (const byte of body.subarray(0, 50)) response.write(Buffer.of(byte));
        response.end(body.subarray(50));
      });
      await withRawTransport(listener, async (transport) => {
        assert.is((await see(transport.exchange(callTool('echo', {})))).end, 'completed', coding);
      });
    }
  });
}

const ENCODERS = {
  gzip: gzipSync,
  deflate: deflateSync,
  'raw deflate': deflateRawSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  'br, gzip': (plain: Buffer) => gzipSync(brotliCompressSync(plain)),
};
for (const [name, encode] of Object.entries(ENCODERS)) {
  test(`a body of ${name} that ends early is the cause of the failure, unless its JSON is whole`, async () => {
    const coding = name.replace('raw ', '');
    for (const kept of [5, 200, -1])
      for (const type of ['application/json', 'text/event-stream']) {
        const listener = initializing((_request, response, id) => {
          const numbers = Array.from({ length: 500 }, (_, index) => index ** 3);
          const text = JSON.stringify({ jsonrpc: '2.0', id, result: { numbers } });
          const body = encode(Buffer.from(type === 'application/json' ? text : `data: ${text}\n\n`));
          response.writeHead(200, { 'content-type': type, 'content-encoding': coding });
          response.end(body.subarray(0, kept));
        });
        await withRawTransport(listener, async (transport) => {
          const { events, end } = await see(transport.exchange(callTool('echo', {})));
          if (kept === -1 && events.length > 0) return; // its last byte is a part of the checksum
          assert.ok(end instanceof GatewayError);
          assert.match(end.message, `encoding (${coding}) ended early`);
        });
      }
  });
}

test('a body that names the coding identity, or has an encoding and no bytes, is plain', async () => {
  const listener = initializing((_request, response, id) => {
    answerJson(response, 200, { jsonrpc: '2.0', id, result: {} }, { 'content-encoding': 'identity' });
  });
  await withRawTransport(listener, async (transport) => {
    assert.is((await see(transport.exchange(callTool('echo', {})))).end, 'completed');
  });
});

test('an error in an encoded refusal reaches the caller', async () => {
  const listener = initializing((_request, response, id) => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32050, message: 'a reason' } });
    const headers = { 'content-type': 'application/json', 'content-encoding': 'x-gzip' };
    response.writeHead(400, headers).end(gzipSync(text));
  });
  await withRawTransport(listener, async (transport) => {
    const { events } = await see(transport.exchange(callTool('echo', {})));
    const refusal = { status: 400, waitMs: undefined };
    assert.equal(events, [{ kind: 'error', error: { code: -32050, message: 'a reason' }, refusal }]);
  });
});

test.run();
