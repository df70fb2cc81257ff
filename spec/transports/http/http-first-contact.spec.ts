// The first contact with each kind of server: what it costs, counted in requests, and what a later one costs. A question that is
// marked with `…` was waited for in vain, which takes time; everything else is as fast as the server. And servers that do not
// answer `server/discover` at once: which of them are modern all the same, when a mistake is found out, and what is remembered.

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

/** An event stream on which nothing ever comes. */
const emptyStream: Answer = (response) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();

/** A server under test. */
interface Contact {
  /** What came of one more opening, and what was asked meanwhile, session deletes included. */
  open(more?: Opening): Promise<{ readonly outcome: string; readonly asked: readonly string[] }>;
  /** It treats methods so from now on. */
  behave(manners: Answers): void;
  /** Questions so far. */
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

/** A legacy server that does so with `server/discover`. */
const legacy = (discover: Answer): Answers => ({ [D]: discover, [I]: initialized });
const PLAIN = [D, I, DONE];
/** Asked in vain before and after `initialize`, and never again. */
const SILENT = { first: [`${D} …`, I, `${D} …`, DONE], later: [I, DONE] };
const CUT = { first: [D, I, D, DONE], later: [I, DONE] };
const ROWS: Readonly<Record<string, Row>> = {
  'a modern server': { manners: { [D]: discovered }, outcome: 'modern', first: [D] },
  'one of both eras': {
    manners: { [D]: discovered, [I]: initialized },
    outcome: 'modern',
    first: [D],
  },
  'a legacy one that does not know the method': { manners: legacy(refused()), first: PLAIN },
  'one that answers 404': { manners: legacy(status(404)), first: PLAIN },
  'one that answers 500': { manners: legacy(status(500)), first: PLAIN },
  'one that answers 200 with a page': { manners: legacy(status(200, '<h1>Welcome</h1>')), first: PLAIN },
  'one that answers 202 with nothing': { manners: legacy(status(202)), first: PLAIN },
  'one that never answers': { manners: legacy(silence), ...SILENT },
  'one that opens a stream and says nothing': { manners: legacy(emptyStream), ...SILENT },
  'one that closes the connection': { manners: legacy(cut), ...CUT },
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
  'a server of the older transport': {
    manners: { otherwise: status(404, 'Cannot POST /sse') },
    outcome: /POST \/sse was answered with HTTP 404/,
    first: [D, I, 'ping', 'tools/list'],
    path: '/sse',
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

// Servers that do not answer `server/discover` at once.

/** Of servers that leave the first question unanswered, but no other. */
const SHORT_MS = 500;

/** A server that starts slowly: it does as it says when all of these were asked, and then in this order. */
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

/** The first question is lost on its way, or takes for ever. */
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
  'one of both eras that answers both questions at once, this one first': {
    manners: slow([D, I], dual),
    asked: [D, I],
  },
  'one of both eras that answers both questions at once, the other one first': {
    manners: slow([I, D], dual),
    asked: [D, I, D],
  },
  'one of both eras behind something that lost the question': {
    manners: { ...dual, [D]: losing(discovered) },
    asked: [D, I, D],
  },
  'one that refuses the other era': { manners: { ...modern, [D]: losing(discovered) }, asked: [D, I, D] },
  'one that says nothing to the other era': {
    manners: slow([D, I], { ...modern, [I]: silence }),
    asked: [D, I],
  },
  'one that fails of the other era': {
    manners: slow([I, D], { ...modern, [I]: status(503) }),
    asked: [D, I],
  },
  'one that breaks at the other era': { manners: slow([I, D], { ...modern, [I]: cut }), asked: [D, I] },
})) {
  test(`a slow modern server is a modern one: ${name}`, () =>
    withContact(manners, async (contact) => {
      const memory: OpeningMemory = {};
      assert.equal(await contact.open({ memory, discoverTimeoutMs: SHORT_MS }), { outcome: 'modern', asked });
      assert.equal(memory.unansweredAtMs, undefined);
      assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D] });
    }));
}

test('a legacy server that is slow to answer `initialize`, too', () => {
  const late: Answer = (...asked) => setTimeout(() => initialized(...asked), 300);
  return withContact({ ...legacy(silence), [I]: late }, async (contact) => {
    const opened = await contact.open({ discoverTimeoutMs: SHORT_MS });
    assert.equal(opened, { outcome: 'legacy', asked: [D, I, D, DONE] });
  });
});

test('a server that closes connections while it starts is asked again, and is a modern one', () => {
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

test('ends the session that it opened with a server that is modern after all', () =>
  withContact({ ...dual, [I]: initializedInSession, [D]: losing(discovered) }, async (contact) => {
    const meanwhile = () => until(() => contact.asked.includes('DELETE'), 'it was told');
    const opened = await contact.open({ discoverTimeoutMs: SHORT_MS, meanwhile });
    assert.equal(opened, { outcome: 'modern', asked: [D, I, D, 'DELETE'] });
  }));

test('lets go of the question that nobody waits for any more', async () => {
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

test('corrects itself about a server that is another one by now, whichever that is', async () => {
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

test('leaves time for the handshake, however little of that there is', () =>
  withContact({ [D]: silence, [I]: initialized }, async (contact) => {
    assert.ok(DISCOVER_TIMEOUT_MS > 1_000);
    assert.is((await contact.open({ handshakeTimeoutMs: 1_000 })).outcome, 'legacy');
  }));

// What is remembered of an HTTP backend from one opening to the next.

const NOW_MS = 1_000;

test('remembers an unanswered question for an hour', () => {
  const hourMs = 60 * 60_000;
  const asked = [hourMs - 1, hourMs].map((afterMs) =>
    isDiscoveredFirst({ unansweredAtMs: NOW_MS }, NOW_MS + afterMs),
  );
  assert.equal(asked, [false, true]);
});

test('learns from a server that fails, and not from one that is not there', () => {
  for (const [hasServer, after] of [
    [true, undefined],
    [false, 1],
  ] as const) {
    const memory: OpeningMemory = { unansweredAtMs: 1 };
    noteFailed(memory, undefined, hasServer);
    assert.is(memory.unansweredAtMs, after);
  }
});

test('spares a program the question that ended when it was asked, and asks it again when that is no better', () => {
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

test('takes no other end of a program for the answer to the question', () => {
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

/** Runs the body against such a server. Everything but the listening stream, which there is none of, is counted. */
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
