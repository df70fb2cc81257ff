// The first contact with each kind of server: its cost in requests. A server that leaves `server/discover` unanswered costs a timeout
// as well; everything else is as fast as the server.

import type { RequestListener, ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { open as http, openHttp } from '../../../src/transports/http/http.ts';
import { startSseServer } from '../../fixtures/sse-server.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { withRawServer } from '../raw-server.ts';
import {
  type Answer,
  type Answers,
  cut,
  discovered,
  initialized,
  refused,
  result,
  SESSION,
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

/** Leaves the first request without an answer. */
function losing(answer: Answer): Answer {
  let isLost = false;
  return (...asked) => {
    if (isLost) answer(...asked);
    isLost = true;
  };
}

interface Opening {
  readonly handshakeTimeoutMs?: number;
  /** What happens before it is closed. */
  readonly meanwhile?: () => Promise<void>;
  readonly path?: string | undefined;
}

interface Row {
  readonly manners: Answers;
  readonly outcome?: string | RegExp;
  readonly asked: readonly string[];
  readonly path?: string;
  /** The first request for `server/discover` times out. */
  readonly isSlow?: boolean;
}

/** A legacy server that answers `server/discover` so. */
const legacy = (discover: Answer): Answers => ({ [D]: discover, [I]: initialized });
const PLAIN = [D, I, DONE];
const ROWS: Readonly<Record<string, Row>> = {
  'a modern server': { manners: { [D]: discovered }, outcome: 'modern', asked: [D] },
  'a server of both eras': {
    manners: { [D]: discovered, [I]: initialized },
    outcome: 'modern',
    asked: [D],
  },
  'an unknown method for discover': { manners: legacy(refused()), asked: PLAIN },
  '404 for discover': { manners: legacy(status(404)), asked: PLAIN },
  '500 for discover': { manners: legacy(status(500)), asked: PLAIN },
  '200 with a page for discover': { manners: legacy(status(200, '<h1>Welcome</h1>')), asked: PLAIN },
  '202 with nothing for discover': { manners: legacy(status(202)), asked: PLAIN },
  'no answer to discover': { manners: legacy(silence), asked: PLAIN, isSlow: true },
  'an empty stream for discover': { manners: legacy(emptyStream), asked: PLAIN, isSlow: true },
  'a stream for the notification': { manners: { ...legacy(refused()), [DONE]: emptyStream }, asked: PLAIN },
  'a reset connection for discover': { manners: legacy(cut), asked: PLAIN },
  'a slow modern server': {
    manners: { [D]: losing(discovered) },
    outcome: 'modern',
    asked: [D, I, D],
    isSlow: true,
  },
  'a bare server': {
    manners: { ping: discovered },
    outcome: 'bare',
    asked: [D, I, 'ping'],
  },
  'a bare server without ping': {
    manners: { 'tools/list': discovered },
    outcome: 'bare',
    asked: [D, I, 'ping', 'tools/list'],
  },
  'a server of HTTP+SSE': {
    manners: { otherwise: status(404, 'Cannot POST /sse') },
    outcome: /POST \/sse was answered with HTTP 404/,
    asked: [D, I],
    path: '/sse',
  },
  'a server of an unknown revision, whose session is deleted,': {
    manners: { [D]: refused(), [I]: result({ protocolVersion: '2030-01-01' }, SESSION) },
    outcome: 'it answered initialize with "2030-01-01", a revision the gateway does not speak',
    asked: [D, I, 'DELETE'],
  },
  'a server that names no revision, whose session is deleted,': {
    manners: { [D]: refused(), [I]: result({}, SESSION) },
    outcome: 'it answered initialize without a revision',
    asked: [D, I, 'DELETE'],
  },
  'a server that answers 401': {
    manners: { otherwise: status(401, 'the <b>key</b> has expired') },
    outcome: "answered 401 (the gateway's credentials for the server were refused): the key has expired",
    asked: [D],
  },
  ...Object.fromEntries(
    [402, 410, 451].map((code) => [
      `a server that answers ${code} to everything`,
      { manners: { otherwise: status(code) }, outcome: `answered ${code}`, asked: [D] },
    ]),
  ),
  'a server that answers 500 to everything': {
    manners: { otherwise: status(500) },
    outcome: /POST \/mcp was answered with HTTP 500/,
    asked: [D, I],
  },
  'a proxy that answers 503': {
    manners: { otherwise: status(503) },
    outcome: 'answered 503',
    asked: [D],
  },
  'a server that redirects': {
    manners: { otherwise: status(307) },
    outcome: 'POST /elsewhere answered 307 to /elsewhere: register that address',
    asked: [D, D],
  },
  'a server that resets every connection': {
    manners: { otherwise: cut },
    outcome: 'the connection broke before the answer (ECONNRESET)',
    asked: [D, I],
  },
};

for (const [name, row] of Object.entries(ROWS)) {
  const { manners, outcome = 'legacy', asked, path, isSlow = false } = row;
  test(`${name}: ${asked.length} requests`, async () => {
    // The timeout is a quarter of that; where it is not reached it is far longer than the test takes.
    const opened = await open(manners, { path, handshakeTimeoutMs: isSlow ? 1_000 : 20_000 });
    if (typeof outcome === 'string') assert.is(opened.outcome, outcome);
    else assert.match(opened.outcome, outcome);
    assert.equal(opened.asked, asked);
  });
}

test('a server of HTTP+SSE that is registered as http is recognised by requests to its own URL only', async () => {
  const server = await startSseServer();
  try {
    const transport = await http(httpDefinition(server.url), openOptions());
    assert.is(transport.kind, 'sse');
    await transport.close();
    const { pathname } = new URL(server.url);
    const tried = server.requests.slice(0, 3).map(({ verb, path }) => `${verb} ${path}`);
    assert.equal(tried, [`POST ${pathname}`, `POST ${pathname}`, `GET ${pathname}`]);
  } finally {
    await server.close();
  }
});

test('a server of neither transport gets one GET more, and the reason is that of Streamable HTTP', async () => {
  const asked: string[] = [];
  const refuse = async (...[request, response]: Parameters<Parameters<typeof withRawServer>[0]>) => {
    asked.push(String(request.method));
    response.writeHead(405).end();
  };
  await withRawServer(refuse, async ({ url }) => {
    const failing = http(httpDefinition(String(new URL('/sse', url))), openOptions());
    const { message } = await failing.catch((thrown: unknown) => Object(thrown));
    assert.match(
      message,
      /POST \/sse was answered with HTTP 405 \(it takes no POST, but perhaps GET, .*\): not an MCP server/,
    );
    assert.equal(asked, ['POST', 'POST', 'GET']);
  });
});

test('a server is opened only when it has accepted the notification', async () => {
  let isReady = false;
  const slow: Answer = (response) =>
    setTimeout(() => {
      isReady = true;
      response.writeHead(202).end();
    }, 300);
  const meanwhile = async () => assert.ok(isReady);
  const opened = await open({ ...legacy(refused()), [DONE]: slow }, { meanwhile });
  assert.equal(opened, { outcome: 'legacy', asked: PLAIN });
});

test('a server that never answers fails after the handshake timeout', async () => {
  const opened = await open({ otherwise: silence }, { handshakeTimeoutMs: 1_000 });
  assert.equal(opened, { outcome: 'no handshake within 1 s', asked: [D, I] });
});

test('a discover request that timed out is aborted', async () => {
  const hanging = new Set<ServerResponse>();
  const hang: Answer = (response) => {
    hanging.add(response);
    response.on('close', () => hanging.delete(response));
  };
  const meanwhile = () => until(() => hanging.size === 0, 'its connection is closed');
  const { outcome } = await open(legacy(hang), { handshakeTimeoutMs: 1_000, meanwhile });
  assert.is(outcome, 'legacy');
});

test.run();

/** Opens once; the outcome, and the requests except GET, as there is no listening stream. */
async function open(
  manners: Answers,
  { handshakeTimeoutMs = 20_000, meanwhile, path = '/mcp' }: Opening = {},
): Promise<{ readonly outcome: string; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const listener: RequestListener = serving({ DELETE: status(202), ...manners }, asked);
  let outcome = '';
  await withRawServer(listener, async ({ url }) => {
    try {
      const definition = httpDefinition(String(new URL(path, url)));
      const transport = await openHttp(definition, openOptions({ handshakeTimeoutMs }));
      await meanwhile?.();
      await transport.close();
      outcome = transport.handshake.era;
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown;
      outcome = thrown.facts.reason ?? thrown.message;
    }
  });
  return { outcome, asked };
}
