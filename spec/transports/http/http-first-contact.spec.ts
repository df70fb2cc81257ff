// What the first contact with each kind of server costs, counted in requests, and what a later one costs. A question that is
// marked with `…` was waited for in vain: that is what takes time. Everything else is as fast as the server.

import * as assert from 'uvu/assert';
import { http } from '../../../src/transports/http/http.ts';
import { sse } from '../../../src/transports/sse/sse.ts';
import type { OpeningMemory } from '../../../src/transports/transport.ts';
import { startSseServer } from '../../fixtures/sse-server.ts';
import { suite } from '../../helpers/suite.ts';
import { withRawServer } from '../raw-server.ts';
import {
  type Answer,
  cut,
  discovered,
  emptyStream,
  initialized,
  type Manners,
  refused,
  silence,
  status,
  withContact,
} from './first-contact.ts';
import { httpDefinition, openOptions } from './open-http.ts';

const test = suite('http, first contact', { timeoutMs: 30_000 });

const D = 'server/discover';
const I = 'initialize';
const DONE = 'notifications/initialized';

interface Row {
  readonly manners: Manners;
  readonly outcome?: string | RegExp;
  readonly first: readonly string[];
  /** Default: the same. */
  readonly later?: readonly string[];
  readonly path?: string;
}

/** A legacy server that does so with `server/discover`. */
const legacy = (discover: Answer): Manners => ({ [D]: discover, [I]: initialized, otherwise: refused() });
const PLAIN = [D, I, DONE];
/** Asked in vain before and after `initialize`, and never again. */
const SILENT = { first: [`${D} …`, I, `${D} …`, DONE], later: [I, DONE] };
const CUT = { first: [D, I, D, DONE], later: [I, DONE] };

const ROWS: Readonly<Record<string, Row>> = {
  'a modern server': { manners: { [D]: discovered, otherwise: refused() }, outcome: 'modern', first: [D] },
  'one of both eras': {
    manners: { [D]: discovered, [I]: initialized, otherwise: refused() },
    outcome: 'modern',
    first: [D],
  },
  'a legacy one that does not know the method': { manners: legacy(refused()), first: PLAIN },
  'one that is not initialized, it says': { manners: legacy(refused(400, -32000)), first: PLAIN },
  'one that answers 404': { manners: legacy(status(404)), first: PLAIN },
  'one that answers 404 with a page': { manners: legacy(status(404, '<h1>Not found</h1>')), first: PLAIN },
  'one that answers 405': { manners: legacy(status(405)), first: PLAIN },
  'one that answers 500': { manners: legacy(status(500)), first: PLAIN },
  'one that answers 501': { manners: legacy(status(501)), first: PLAIN },
  'one that answers 200 with a page': { manners: legacy(status(200, '<h1>Welcome</h1>')), first: PLAIN },
  'one that answers 200 with nothing': { manners: legacy(status(200)), first: PLAIN },
  'one that answers 202 with nothing': { manners: legacy(status(202)), first: PLAIN },
  'one that never answers': { manners: legacy(silence), ...SILENT },
  'one that opens a stream and says nothing': { manners: legacy(emptyStream), ...SILENT },
  'one that closes the connection': { manners: legacy(cut), ...CUT },
  'a bare server': {
    manners: { ping: discovered, otherwise: refused() },
    outcome: 'bare',
    first: [D, I, 'ping'],
  },
  'a bare server without ping': {
    manners: { 'tools/list': discovered, otherwise: refused() },
    outcome: 'bare',
    first: [D, I, 'ping', 'tools/list'],
  },
  'a server of the older transport': {
    manners: { otherwise: status(404, 'Cannot POST /sse') },
    outcome: /POST \/sse was answered with HTTP 404/,
    first: [D, I, 'ping', 'tools/list'],
    path: '/sse',
  },
  'a page': {
    manners: { otherwise: status(404, '<h1>No</h1>') },
    outcome: /no MCP server/,
    first: [D, I, 'ping', 'tools/list'],
  },
  'one that wants a key': { manners: { otherwise: status(401) }, outcome: 'answered 401', first: [D] },
  'one behind a proxy in trouble': {
    manners: { otherwise: status(503) },
    outcome: 'answered 503',
    first: [D],
  },
  'one that has moved': {
    manners: { otherwise: status(307) },
    outcome: /redirects are not followed/,
    first: [D],
  },
  'one that closes every connection': {
    manners: { otherwise: cut },
    outcome: 'the connection was reset',
    first: [D, I],
  },
};

for (const [name, { manners, outcome = 'legacy', first, later = first, path }] of Object.entries(ROWS)) {
  test(`${name}: ${first.length} requests, later ${later.length}`, () =>
    withContact(
      manners,
      async (contact) => {
        const memory: OpeningMemory = {};
        for (const expected of [first, later, later]) {
          // Only who waits in vain waits: there it is short, elsewhere it is never reached.
          const discoverTimeoutMs = first.some((asked) => asked.endsWith('…')) ? 50 : undefined;
          const opened = await contact.open({ memory, discoverTimeoutMs });
          if (typeof outcome === 'string') assert.is(opened.outcome, outcome);
          else assert.match(opened.outcome, outcome);
          assert.equal(
            opened.asked,
            expected.map((asked) => asked.replace(' …', '')),
          );
        }
      },
      path,
    ));
}

test('a server of the older transport, registered as one: a stream and 2 requests, each time', async () => {
  const server = await startSseServer();
  try {
    for (let opening = 1; opening <= 2; opening += 1) {
      const transport = await sse.open(httpDefinition(server.url, { transport: 'sse' }), openOptions());
      assert.is(transport.peer.era, 'legacy');
      await transport.close();
      const asked = server.requests.map(({ verb, message }) => message?.method ?? verb);
      assert.equal(asked, Array.from({ length: opening }, () => ['GET', I, DONE]).flat());
    }
  } finally {
    await server.close();
  }
});

test('a server of the older transport, registered without saying so: it is found out at its URL, and nowhere else', async () => {
  const server = await startSseServer();
  try {
    const transport = await http.open(httpDefinition(server.url), openOptions());
    assert.is(transport.kind, 'sse');
    await transport.close();
    const { pathname } = new URL(server.url);
    const tried = server.requests.slice(0, 5).map(({ verb, path }) => `${verb} ${path}`);
    assert.equal(tried, [...Array.from({ length: 4 }, () => `POST ${pathname}`), `GET ${pathname}`]);
  } finally {
    await server.close();
  }
});

test('a server of neither transport: one GET more, and the reason names both at a path for the older one', async () => {
  const asked: string[] = [];
  const refuse = async (...[request, response]: Parameters<Parameters<typeof withRawServer>[0]>) => {
    asked.push(String(request.method));
    response.writeHead(405).end();
  };
  await withRawServer(refuse, async ({ url }) => {
    const failing = http.open(httpDefinition(String(new URL('/sse', url))), openOptions());
    const { message } = await failing.catch((thrown: unknown) => Object(thrown));
    assert.match(message, /POST \/sse was answered with HTTP 405.*; as HTTP\+SSE: .*405/);
    assert.equal(asked, ['POST', 'POST', 'POST', 'POST', 'GET']);
  });
});

test('a server that answers nothing at all: the whole time for the handshake, with both questions open', () =>
  withContact({ otherwise: silence }, async (contact) => {
    const memory: OpeningMemory = {};
    for (let opening = 1; opening <= 2; opening += 1) {
      const opened = await contact.open({ memory, discoverTimeoutMs: 50, handshakeTimeoutMs: 1_000 });
      assert.equal(opened, { outcome: 'no handshake within 1 s', asked: [D, I] });
    }
  }));

test.run();
