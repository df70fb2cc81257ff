// Calls have a context without koa (src/http/routing/plain-call.ts). A path with a `?` is left to koa: each request is sent both ways, and
// everything that it causes must be the same.

import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { META } from '../../src/domain/mcp/mcp.ts';
import {
  initialize,
  MCP_TYPES,
  modern,
  openSession,
  rpc,
  toolCall,
} from '../helpers/clients/mcp-messages.ts';
import { sendRaw } from '../helpers/clients/raw-http.ts';
import { becomes } from '../helpers/eventually.ts';
import { type AccountsFixture, type Credentials, startWithAccounts } from '../helpers/http/accounts.ts';
import { appFor } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('calls without koa');

const app = appFor(test, () =>
  startWithAccounts({
    ...{ logLevel: 'info', maxBodyBytes: 100_000, limits: { userHourlyLimit: 1, apiKeyHourlyLimit: 5_000 } },
    corsOrigins: ['https://page.example'],
    auditSettings: { recordsCalls: true, callArguments: 'full', keptCalls: 1_000, keptDays: 0 },
  }),
);

const CALL = '/mcp/demo/tools/call';
const MCP = '/mcp/demo';

interface Sent {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** `Transfer-Encoding: chunked` instead of a length. */
  readonly isChunked?: boolean;
}

type Caller = 'key' | 'reader' | 'other' | 'spent' | 'expired' | 'session' | 'nobody';

const echo = { name: 'echo', arguments: { text: 'hi' } };

/** What is sent, and by which caller. */
const TABLE: readonly (readonly [what: string, caller: Caller, sent: Sent])[] = [
  ['a call', 'key', { path: CALL, body: echo }],
  ['a call in chunks', 'key', { path: CALL, body: echo, isChunked: true }],
  ['a call for events', 'key', { path: CALL, body: echo, headers: { accept: 'text/event-stream' } }],
  [
    'a long Accept',
    'key',
    { path: CALL, body: echo, headers: { accept: `text/event-stream,${'a/b,'.repeat(500)}` } },
  ],
  [
    'equal weights',
    'key',
    { path: CALL, body: echo, headers: { accept: 'text/event-stream, application/json' } },
  ],
  ['a resource', 'key', { path: '/mcp/demo/resources/read', body: { uri: 'demo://none' } }],
  ['a prompt', 'key', { path: '/mcp/demo/prompts/get', body: { name: 'none' } }],
  ['a completion', 'key', { path: '/mcp/demo/completion/complete', body: {} }],
  ['an unknown tool', 'key', { path: CALL, body: { name: 'none' } }],
  ['a failing tool', 'key', { path: CALL, body: { name: 'fail' } }],
  [
    'a body over 64 kB',
    'key',
    { path: CALL, body: { name: 'echo', arguments: { text: 'x'.repeat(70_000) } } },
  ],
  [
    'a body over the limit',
    'key',
    { path: CALL, body: { name: 'echo', arguments: { text: 'x'.repeat(100_000) } } },
  ],
  ['the same in chunks', 'key', { path: CALL, body: 'x'.repeat(100_001), isChunked: true }],
  ['no body', 'key', { path: CALL }],
  ['broken JSON', 'key', { path: CALL, body: '{"name":' }],
  ['broken UTF-8', 'key', { path: CALL, body: Buffer.from([0x22, 0xff, 0x22]) }],
  ['a lone surrogate', 'key', { path: CALL, body: '{"name":"\\ud800"}' }],
  ['unknown fields', 'key', { path: CALL, body: { ...echo, more: 1 } }],
  ['another type', 'key', { path: CALL, body: echo, headers: { 'content-type': 'text/plain' } }],
  ['an encoding', 'key', { path: CALL, body: gzipSync('{}'), headers: { 'content-encoding': 'gzip' } }],
  ['an unknown template', 'key', { path: '/mcp/none/tools/call', body: echo }],
  ['a template without instances', 'key', { path: '/mcp/empty/tools/call', body: echo }],
  ['no credentials', 'nobody', { path: CALL, body: echo }],
  ['a wrong key', 'nobody', { path: CALL, body: echo, headers: { 'x-api-key': 'sd_wrong' } }],
  ['a wrong scheme', 'nobody', { path: CALL, body: echo, headers: { authorization: 'Basic YTpi' } }],
  ['an expired token', 'expired', { path: CALL, body: echo }],
  ['no requests left', 'spent', { path: CALL, body: echo }],
  ['no right to call', 'reader', { path: CALL, body: echo }],
  ['no right to the template', 'other', { path: CALL, body: echo }],
  ['two credentials', 'key', { path: CALL, body: echo, headers: { authorization: 'Bearer a.b.c' } }],
  ['a foreign host', 'key', { path: CALL, body: echo, headers: { host: 'page.example' } }],
  ['a foreign origin', 'key', { path: CALL, body: echo, headers: { origin: 'https://other.example' } }],
  ['an allowed origin', 'key', { path: CALL, body: echo, headers: { origin: 'https://page.example' } }],
  ['an invalid request id', 'key', { path: CALL, body: echo, headers: { 'x-request-id': 'a b' } }],
  ['a message in a session', 'session', { path: MCP, body: toolCall('echo', { text: 'hi' }) }],
  ['its unknown tool', 'session', { path: MCP, body: toolCall('none') }],
  ['a ping', 'session', { path: `${MCP}/mcp`, body: rpc('ping') }],
  ['a notification', 'session', { path: MCP, body: { jsonrpc: '2.0', method: 'notifications/initialized' } }],
  ['a batch', 'session', { path: MCP, body: [rpc('ping'), rpc('ping', {}, 2)] }],
  ['not a message', 'session', { path: MCP, body: { a: 1 } }],
  ['a message in no session', 'key', { path: MCP, body: rpc('tools/list'), headers: MCP_TYPES }],
  [
    'an unknown session',
    'key',
    { path: MCP, body: rpc('ping'), headers: { ...MCP_TYPES, 'mcp-session-id': 'none' } },
  ],
  ['a handshake without its fields', 'key', { path: MCP, body: rpc('initialize'), headers: MCP_TYPES }],
  ['a handshake over the limit', 'spent', { path: MCP, body: initialize(), headers: MCP_TYPES }],
  ['a message without a right', 'reader', { path: MCP, body: rpc('ping'), headers: MCP_TYPES }],
  ['a message to nobody', 'key', { path: '/mcp/none', body: rpc('ping'), headers: MCP_TYPES }],
  ['a message without credentials', 'nobody', { path: MCP, body: rpc('ping'), headers: MCP_TYPES }],
  ['broken JSON of a message', 'session', { path: MCP, body: '{' }],
  [
    'a message that accepts no events',
    'key',
    { path: MCP, body: rpc('ping'), headers: { accept: 'text/html' } },
  ],
  ['a modern call', 'key', { path: MCP, ...modern('tools/call', echo) }],
  [
    'a modern header that differs',
    'key',
    {
      path: MCP,
      ...modern('tools/call', echo),
      headers: { ...modern('tools/call', echo).headers, 'mcp-name': 'other' },
    },
  ],
  [
    'a modern revision that is unknown',
    'key',
    { path: MCP, body: rpc('ping', { _meta: { [META.protocolVersion]: '2030-01-01' } }), headers: MCP_TYPES },
  ],
  ['a message to an unknown stream', 'key', { path: '/mcp/demo/messages', body: rpc('ping') }],
];

test('are answered, logged, counted and recorded as with koa', async () => {
  const callers = await callersOf(app);
  const events: object[] = [];
  const watching = app.gateway.events$.subscribe((event) => events.push(event));
  for (const [index, [what, caller, sent]] of TABLE.entries()) {
    const found: object[] = [];
    for (const path of [sent.path, `${sent.path}?`]) {
      const [logged, counted] = [app.log.length, await counts()];
      events.length = 0;
      const headers = { 'x-request-id': `plain-${index}`, ...callers[caller], ...sent.headers };
      const answer = await sendRaw(app.port, ...requestOf({ ...sent, path, headers }));
      await becomes(() => app.log.slice(logged).some(({ msg }) => msg === 'request'), true);
      const now = await counts();
      found.push({
        answer: answer
          .replace(/^Date: .*\r\n/m, '')
          .replace(/^(X-RateLimit-Remaining|Retry-After): \d+/gm, '$1'),
        log: app.log.slice(logged).map((line) => without(line, 'time', 'ms')),
        events: events.map((event) => without(event, 'atMs', 'call', 'durationMs', 'waitMs')),
        counts: Object.entries(now)
          .map(([name, count]) => [name, count - (counted[name] ?? 0)])
          .filter(([, more]) => more !== 0),
        audit: (await app.auth.audit.list({ limit: 1 })).map((entry) =>
          without(entry, 'id', 'at', 'durationMs'),
        ),
      });
    }
    const [plain, other] = found.map((each) => JSON.stringify(each, null, 1).replaceAll(UUID, 'uuid'));
    assert.match(plain ?? '', /HTTP\/1\.1 \d{3}/, what);
    assert.fixture(plain ?? '', other ?? '', what);
  }
  watching.unsubscribe();
});

test.run();

const UUID = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

async function callersOf({ key, user, serve, expired, as }: AccountsFixture) {
  await serve('demo', 'one');
  await serve('other', 'one');
  await as(user, 'GET', '/mcp/demo/tools/list'); // the only request of an hour
  const caller = await key(['tools:call']);
  const credentials: Record<Caller, Credentials> = {
    key: caller,
    reader: await key(['gateway:read']),
    other: await key(['tools:call'], ['other']),
    spent: user,
    expired: await expired(),
    session: await openSession(app, MCP, { credentials: caller }),
    nobody: {},
  };
  return credentials;
}

function requestOf({ path, headers, body, isChunked = false }: Sent): readonly [string, ...Buffer[]] {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const bytes = Buffer.from(text ?? '');
  const size = isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(bytes.length) };
  const common = { host: `127.0.0.1:${app.port}`, connection: 'close', 'content-type': 'application/json' };
  const lines = Object.entries({ ...common, ...(body === undefined ? {} : size), ...headers });
  const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
  if (!isChunked) return [head, bytes];
  return [head, Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n0\r\n\r\n')];
}

/** The HTTP counters of the metrics. */
async function counts(): Promise<Record<string, number>> {
  const lines = (await app.app.metrics.text())
    .split('\n')
    .filter((line) => line.startsWith('stagedoor_http'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

/** A copy without these fields, at any depth. */
function without(value: object, ...names: string[]): unknown {
  return JSON.parse(
    JSON.stringify(value, (name, field: unknown) => (names.includes(name) ? undefined : field)),
  );
}
