// The first contact with each kind of server: its cost in requests, and the cost of later ones. A request that is marked with
// `…` times out; everything else is as fast as the server. And servers that do not answer `server/discover` at once: which of
// them are recognised as modern, when a wrong era is corrected, and what is remembered.

import type { RequestListener, ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import { http, openHttp } from '../../../src/transports/http/http.ts';
import {
  DISCOVER_TIMEOUT_MS,
  isDiscoveredFirst,
  noteExit,
  noteFailed,
  noteOpened,
} from '../../../src/transports/http/http-probe.ts';
import type { OpeningMemory } from '../../../src/transports/transport.ts';
import { until } from '../../conformance/transport.ts';
import { startSseServer } from '../../fixtures/sse-server.ts';
import { suite } from '../../helpers/suite.ts';
import { withRawServer } from '../raw-server.ts';
import {
  type Answer,
  type Answers,
  cut,
  discovered,
  initialized,
  initializedInSession,
  refused,
  serving,
  silence,
  status,
} from '../scripted-server.ts';
import { httpDefinition, openOptions } from './open-http.ts';

const test = suite('http, first contact', { timeoutMs: 30_000 });

const D = 'server/discover';
const I = 'initialize';
const DONE = 'notifications/initialized';

/** An event stream without events. */
const emptyStream: Answer = (response) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();

/** A server under test. */
interface Contact {
  /** Opens once more; the outcome, and the requests meanwhile, session deletes included. */
  open(more?: Opening): Promise<{ readonly outcome: string; readonly asked: readonly string[] }>;
  /** Changes how the server answers methods. */
  behave(manners: Answers): void;
  /** The requests received. */
  readonly asked: readonly string[];
}

interface Opening {
  readonly memory?: OpeningMemory;
  readonly discoverTimeoutMs?: number | undefined;
  readonly handshakeTimeoutMs?: number | undefined;
  /** What happens before it is closed. */
  readonly meanwhile?: () => Promise<void>;
}

interface Row {
  readonly manners: Answers;
  readonly outcome?: string | RegExp;
  readonly first: readonly string[];
  /** Default: the same. */
  readonly later?: readonly string[];
  readonly path?: string;
}

/** A legacy server that answers `server/discover` so. */
const legacy = (discover: Answer): Answers => ({ [D]: discover, [I]: initialized });
const PLAIN = [D, I, DONE];
/** Discover times out before and after `initialize`, and is not sent again. */
const SILENT = { first: [`${D} …`, I, `${D} …`, DONE], later: [I, DONE] };
const CUT = { first: [D, I, D, DONE], later: [I, DONE] };
const ROWS: Readonly<Record<string, Row>> = {
  'a modern server': { manners: { [D]: discovered }, outcome: 'modern', first: [D] },
  'a server of both eras': {
    manners: { [D]: discovered, [I]: initialized },
    outcome: 'modern',
    first: [D],
  },
  'an unknown method for discover': { manners: legacy(refused()), first: PLAIN },
  '404 for discover': { manners: legacy(status(404)), first: PLAIN },
  '500 for discover': { manners: legacy(status(500)), first: PLAIN },
  '200 with a page for discover': { manners: legacy(status(200, '<h1>Welcome</h1>')), first: PLAIN },
  '202 with nothing for discover': { manners: legacy(status(202)), first: PLAIN },
  'no answer to discover': { manners: legacy(silence), ...SILENT },
  'an empty stream for discover': { manners: legacy(emptyStream), ...SILENT },
  'a reset connection for discover': { manners: legacy(cut), ...CUT },
  'a bare server': {
    manners: { ping: discovered },
    outcome: 'bare',
    first: [D, I, 'ping'],
  },
  'a bare server without ping': {
    manners: { 'tools/list': discovered },
    outcome: 'bare',
    first: [D, I, 'ping', 'tools/list'],
  },
  'a server of HTTP+SSE': {
    manners: { otherwise: status(404, 'Cannot POST /sse') },
    outcome: /POST \/sse was answered with HTTP 404/,
    first: [D, I, 'ping', 'tools/list'],
    path: '/sse',
  },
  'a server that answers 401': { manners: { otherwise: status(401) }, outcome: 'answered 401', first: [D] },
  'a proxy that answers 503': {
    manners: { otherwise: status(503) },
    outcome: 'answered 503',
    first: [D],
  },
  'a server that redirects': {
    manners: { otherwise: status(307) },
    outcome: /redirects are not followed/,
    first: [D],
  },
  'a server that resets every connection': {
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
          // The timeout is short where it is reached; elsewhere it is the default, and never reached.
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

test('a server of HTTP+SSE that is registered as http is recognised by requests to its own URL only', async () => {
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

test('a server of neither transport gets one GET more, and the reason names both at a path for HTTP+SSE', async () => {
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

test('a server that accepts a notification with a stream without end is opened', () =>
  withContact({ ...legacy(refused()), [DONE]: emptyStream }, async (contact) =>
    assert.equal(await contact.open({ handshakeTimeoutMs: 10_000 }), { outcome: 'legacy', asked: PLAIN }),
  ));

test('a server is opened only when it has accepted the notification', async () => {
  let isReady = false;
  const slow: Answer = (response) =>
    setTimeout(() => {
      isReady = true;
      response.writeHead(202).end();
    }, 300);
  await withContact({ ...legacy(refused()), [DONE]: slow }, async (contact) => {
    const meanwhile = async () => assert.ok(isReady);
    assert.equal(await contact.open({ meanwhile }), { outcome: 'legacy', asked: PLAIN });
  });
});

test('a server that never answers fails after the handshake timeout, with both requests still open', () =>
  withContact({ otherwise: silence }, async (contact) => {
    const memory: OpeningMemory = {};
    for (let opening = 1; opening <= 2; opening += 1) {
      const opened = await contact.open({ memory, discoverTimeoutMs: 50, handshakeTimeoutMs: 1_000 });
      assert.equal(opened, { outcome: 'no handshake within 1 s', asked: [D, I] });
    }
  }));

// Servers that do not answer `server/discover` at once.

/** The timeout of discover for servers that leave only its first request unanswered. */
const SHORT_MS = 500;

/** A server that starts slowly: it answers when all of these requests have arrived, in this order. */
function slow(order: readonly string[], manners: Answers): Answers {
  const waiting = new Map<string, () => void>();
  let isUp = false;
  const held =
    (method: string): Answer =>
    (...asked) => {
      const answer = () => manners[method]?.(...asked);
      if (isUp) return void answer();
      waiting.set(method, answer);
      if (waiting.size < order.length) return;
      isUp = true;
      for (const each of order) waiting.get(each)?.();
    };
  return { ...manners, ...Object.fromEntries(order.map((method) => [method, held(method)])) };
}

/** Leaves the first request without an answer. */
function losing(answer: Answer): Answer {
  let isLost = false;
  return (...asked) => {
    if (isLost) answer(...asked);
    isLost = true;
  };
}

const modern: Answers = { [D]: discovered };
const dual: Answers = { ...modern, [I]: initialized };

for (const [name, { manners, asked }] of Object.entries<{ manners: Answers; asked: readonly string[] }>({
  'both eras, answers discover and initialize at once in this order': {
    manners: slow([D, I], dual),
    asked: [D, I],
  },
  'both eras, answers initialize and discover at once in this order': {
    manners: slow([I, D], dual),
    asked: [D, I, D],
  },
  'both eras, the first discover request is lost': {
    manners: { ...dual, [D]: losing(discovered) },
    asked: [D, I, D],
  },
  'modern only, refuses initialize': { manners: { ...modern, [D]: losing(discovered) }, asked: [D, I, D] },
  'modern only, does not answer initialize': {
    manners: slow([D, I], { ...modern, [I]: silence }),
    asked: [D, I],
  },
  'modern only, answers initialize with 503': {
    manners: slow([I, D], { ...modern, [I]: status(503) }),
    asked: [D, I],
  },
  'modern only, resets the connection': { manners: slow([I, D], { ...modern, [I]: cut }), asked: [D, I] },
})) {
  test(`a slow server is recognised as modern: ${name}`, () =>
    withContact(manners, async (contact) => {
      const memory: OpeningMemory = {};
      assert.equal(await contact.open({ memory, discoverTimeoutMs: SHORT_MS }), { outcome: 'modern', asked });
      assert.equal(memory.unansweredAtMs, undefined);
      assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D] });
    }));
}

test('a server that is slow to answer `initialize`, too, is recognised as legacy', () => {
  const late: Answer = (...asked) => setTimeout(() => initialized(...asked), 300);
  return withContact({ ...legacy(silence), [I]: late }, async (contact) => {
    const opened = await contact.open({ discoverTimeoutMs: SHORT_MS });
    assert.equal(opened, { outcome: 'legacy', asked: [D, I, D, DONE] });
  });
});

test('a server that resets connections while it starts is asked again, and recognised as modern', () => {
  let times = 0;
  const starting: Answer = (...asked) => {
    times += 1;
    (times === 1 ? cut : discovered)(...asked);
  };
  return withContact({ ...dual, [D]: starting }, async (contact) => {
    const memory: OpeningMemory = {};
    assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D, I, D] });
    assert.equal(memory.unansweredAtMs, undefined);
  });
});

test('the legacy session with a server that turns out to be modern is deleted', () =>
  withContact({ ...dual, [I]: initializedInSession, [D]: losing(discovered) }, async (contact) => {
    const meanwhile = () => until(() => contact.asked.includes('DELETE'), 'it received DELETE');
    const opened = await contact.open({ discoverTimeoutMs: SHORT_MS, meanwhile });
    assert.equal(opened, { outcome: 'modern', asked: [D, I, D, 'DELETE'] });
  }));

test('a discover request that timed out is aborted', async () => {
  const left: string[] = [];
  const open = new Set<ServerResponse>();
  const hanging: Answer = (response) => {
    open.add(response);
    response.on('close', () => {
      left.push(D);
      open.delete(response);
    });
  };
  await withContact({ [D]: hanging, [I]: initialized }, async (contact) => {
    await contact.open({ discoverTimeoutMs: 50 });
    await until(() => open.size === 0, 'its connections are closed');
    assert.equal(left, [D, D]);
  });
});

test('a server remembered as legacy is recognised anew when it has become modern or bare', async () => {
  for (const [now, outcome, asked] of [
    [modern, 'modern', [I, D]],
    [{ ping: discovered }, 'bare', [I, D, 'ping']],
  ] as const satisfies readonly (readonly [Answers, string, readonly string[]])[]) {
    await withContact({ [D]: silence, [I]: initialized }, async (contact) => {
      const memory: OpeningMemory = {};
      assert.is((await contact.open({ memory, discoverTimeoutMs: 50 })).outcome, 'legacy');
      assert.type(memory.unansweredAtMs, 'number');
      contact.behave(now);
      assert.equal(await contact.open({ memory }), { outcome, asked });
      assert.is((await contact.open({ memory })).asked[0], D, 'it is asked like any other again');
    });
  }
});

test('the discover timeout leaves time for initialize, however short the handshake timeout is', () =>
  withContact({ [D]: silence, [I]: initialized }, async (contact) => {
    assert.ok(DISCOVER_TIMEOUT_MS > 1_000);
    assert.is((await contact.open({ handshakeTimeoutMs: 1_000 })).outcome, 'legacy');
  }));

// What is remembered of an HTTP backend from one opening to the next.

const NOW_MS = 1_000;

test('an unanswered discover request is remembered for an hour', () => {
  const hourMs = 60 * 60_000;
  const asked = [hourMs - 1, hourMs].map((afterMs) =>
    isDiscoveredFirst({ unansweredAtMs: NOW_MS }, NOW_MS + afterMs),
  );
  assert.equal(asked, [false, true]);
});

test('a failed opening is remembered only if there was a server', () => {
  for (const [hasServer, after] of [
    [true, undefined],
    [false, 1],
  ] as const) {
    const memory: OpeningMemory = { unansweredAtMs: 1 };
    noteFailed(memory, undefined, hasServer);
    assert.is(memory.unansweredAtMs, after);
  }
});

test('a program that exits at discover starts once without it, and with it again if that fails, too', () => {
  for (const hasServer of [true, false]) {
    const memory: OpeningMemory = {};
    noteFailed(memory, 'cut', hasServer);
    assert.is(isDiscoveredFirst(memory, NOW_MS), true, 'a server may just have been restarted');
    noteFailed(memory, undefined, false); // it is gone, and was tried again
    noteExit(memory, NOW_MS);
    assert.is(isDiscoveredFirst(memory, NOW_MS), false);
    noteExit(memory, NOW_MS);
    assert.is(isDiscoveredFirst(memory, NOW_MS), true);
  }
});

test('other exits of a program do not count as an answer to discover', () => {
  const memory: OpeningMemory = {};
  noteFailed(memory, 'cut', true);
  noteOpened(memory, 'modern', 'answered', NOW_MS);
  noteExit(memory, NOW_MS);
  assert.is(isDiscoveredFirst(memory, NOW_MS), true);
  noteFailed(memory, 'unanswered', true);
  noteExit(memory, NOW_MS);
  assert.is(isDiscoveredFirst(memory, NOW_MS), true);
});

test.run();

/** Runs the body against such a server. Counts all requests except GET, as there is no listening stream. */
async function withContact(
  manners: Answers,
  body: (contact: Contact) => Promise<void>,
  path = '/mcp',
): Promise<void> {
  const asked: string[] = [];
  let present = manners;
  const listener: RequestListener = (...exchange) =>
    serving({ DELETE: status(202), ...present }, asked)(...exchange);
  await withRawServer(listener, ({ url }) =>
    body({
      asked,
      behave: (others) => {
        present = others;
      },
      open: async ({ memory = {}, discoverTimeoutMs, handshakeTimeoutMs = 20_000, meanwhile } = {}) => {
        const before = asked.length;
        const options = openOptions({ memory, handshakeTimeoutMs });
        const definition = httpDefinition(String(new URL(path, url)));
        const outcome = await openHttp(definition, options, { discoverTimeoutMs }).then(
          async (transport) => {
            await meanwhile?.();
            await transport.close();
            return transport.peer.era;
          },
          (thrown: unknown) => (thrown instanceof GatewayError ? thrown.facts.reason : String(thrown)),
        );
        return { outcome: outcome ?? '', asked: asked.slice(before) };
      },
    }),
  );
}
