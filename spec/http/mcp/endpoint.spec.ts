// Bad input to the MCP endpoint, over a real port, with real instances behind it: the status and the JSON-RPC code that the
// specification asks for, and the session stays usable. The listeners refuse slow senders and too many headers:
// spec/server/sockets/listeners.spec.ts.

import * as assert from 'uvu/assert';
import { META } from '../../../src/domain/mcp/mcp.ts';
import { MCP_TYPES, modern, openSession, rpc, toolCall } from '../../helpers/clients/mcp-messages.ts';
import { head, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { type Answer, type Ask, appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('bad input to the MCP endpoint');
const BODY_BYTES = 64 * 1024;
const app = appFor(test, () => startWithAccounts({ maxBodyBytes: BODY_BYTES }));
test.before(async () => {
  await app.serve('demo', 'one');
  await app.serve('other', 'two');
});

type Headers = Readonly<Record<string, string>>;

const VERSION = '2025-06-18';
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** Opens a session of `ada` and returns the headers that belong to it. */
async function open(version = VERSION): Promise<Headers> {
  const { 'mcp-session-id': id = '' } = await openSession(app, '/mcp/demo', {
    credentials: app.user,
    version,
  });
  return { 'mcp-session-id': id, 'mcp-protocol-version': version };
}

/** Asserts that the session still serves calls. */
async function assertUnharmed(session: Headers, what: string): Promise<void> {
  const ask = { body: toolCall('name', {}, 'x'), headers: { ...MCP_TYPES, ...session } };
  const answer = await app.as(app.user, 'POST', '/mcp/demo', ask);
  const ids = messagesOf(answer).map((message) => Object(message).id);
  assert.equal([answer.status, ids], [200, ['x']], `after ${what}: ${answer.text}`);
}

/** The messages of an answer, which is one body or an event stream: the endpoint may choose. */
function messagesOf({ headers, text }: Answer): unknown[] {
  const isStream = headers.get('content-type') === 'text/event-stream';
  const bodies = isStream ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data) : [text];
  return bodies.flatMap((body) => JSON.parse(body));
}

function codeOf({ status, body }: Answer): string {
  return [status, Object(body.error).code].filter((part) => part !== undefined).join(' ');
}

interface Row {
  readonly expected: string;
  readonly method?: string;
  readonly path?: string;
  readonly body?: Ask['body'];
  /** They replace those of the session; an empty one is not sent. */
  readonly headers?: Headers;
}

const deep = `${'['.repeat(200)}${']'.repeat(200)}`;
const withId = (id: unknown) => ({ body: { ...ping, id } });

/** Mistakes of a client with a session of revision 2025-06-18. */
const LEGACY: Readonly<Record<string, Row>> = {
  'an empty body': { expected: '400 -32700', body: '' },
  'broken JSON': { expected: '400 -32700', body: '{"jsonrpc":"2.0",' },
  'bytes that are not UTF-8': { expected: '400 -32700', body: Buffer.from([0x22, 0xff, 0x22]) },
  'a JSON string': { expected: '400 -32600', body: '"ping"' },
  'JSON that is nested too deeply': { expected: '400 -32600', body: `{"jsonrpc":"2.0","x":${deep}}` },
  'an object that is not a message': { expected: '400 -32600', body: {} },
  'a message of another version of JSON-RPC': { expected: '400 -32600', body: { ...ping, jsonrpc: '1.0' } },
  'a method that is not a string': { expected: '400 -32600', body: { ...ping, method: 7 } },
  'an id that is null': { expected: '400 -32600', ...withId(null) },
  'an id that is an object': { expected: '400 -32600', ...withId({}) },
  'an id that is a fraction': { expected: '400 -32600', ...withId(1.5) },
  'a batch, which this revision does not have': { expected: '400 -32600', body: [ping] },
  'an empty batch': { expected: '400 -32600', body: [] },
  'a response to no request': { expected: '202', body: { jsonrpc: '2.0', id: 99, result: {} } },
  'no protocol version': { expected: '200', headers: { 'mcp-protocol-version': '' } },
  'an unknown protocol version': {
    expected: '400 -32000',
    headers: { 'mcp-protocol-version': '1999-01-01' },
  },
  'no session id': { expected: '400 -32000', headers: { 'mcp-session-id': '' } },
  'an unknown session id': { expected: '404 -32001', headers: { 'mcp-session-id': 'nobody' } },
  'the session of another template': { expected: '404 -32001', path: '/mcp/other' },
  'the session of one template at /mcp': { expected: '404 -32001', path: '/mcp' },
  'an Accept without event streams': { expected: '406 -32000', headers: { accept: 'application/json' } },
  'a content type other than JSON': { expected: '415 -32000', headers: { 'content-type': 'text/plain' } },
  'a compressed body': { expected: '415 -32000', headers: { 'content-encoding': 'gzip' } },
  'a body that is too large': { expected: '413 -32000', body: 'x'.repeat(BODY_BYTES + 1) },
  'a GET that does not accept event streams': {
    ...{ expected: '406 -32000', method: 'GET' },
    headers: { accept: 'application/json' },
  },
  'a GET without a session id': { expected: '400 -32000', method: 'GET', headers: { 'mcp-session-id': '' } },
  'a GET with an invalid Last-Event-ID': {
    ...{ expected: '400 -32000', method: 'GET' },
    headers: { 'last-event-id': 'nonsense' },
  },
  'a DELETE of an unknown session': {
    ...{ expected: '404 -32001', method: 'DELETE' },
    headers: { 'mcp-session-id': 'nobody' },
  },
};

for (const [what, row] of Object.entries(LEGACY)) {
  test(`${what}: ${row.expected}, and the session stays usable`, async () => {
    const session = await open();
    const { method = 'POST', path = '/mcp/demo', body = method === 'POST' ? ping : undefined } = row;
    const all = Object.entries({ ...MCP_TYPES, ...session, ...row.headers }).filter(
      ([, value]) => value !== '',
    );
    const answer = await app.as(app.user, method, path, { headers: Object.fromEntries(all), body });
    assert.is(codeOf(answer), row.expected, answer.text);
    await assertUnharmed(session, what);
  });
}

test('a session of another caller: 404 as for an unknown one, and it stays usable', async () => {
  const session = await open();
  const stranger = await app.key(['admin']);
  for (const method of ['POST', 'GET', 'DELETE']) {
    const headers = { ...MCP_TYPES, ...session };
    const ask = method === 'POST' ? { body: ping, headers } : { headers };
    const answer = await app.as(stranger, method, '/mcp/demo', ask);
    const unknown = await app.as(stranger, method, '/mcp/demo', {
      ...ask,
      headers: { ...headers, 'mcp-session-id': 'nobody' },
    });
    assert.equal([answer.status, answer.text], [404, unknown.text], method);
  }
  await assertUnharmed(session, 'the visit of a stranger');
});

test('a second stream of one session: 409, and the first stays open', async () => {
  const session = await open();
  const headers = { ...session, ...app.user, accept: 'text/event-stream' };
  const socket = await openRaw(app.port);
  socket.write(head('GET /mcp/demo', headers));
  await readUntil(socket, 'text/event-stream');
  assert.is(codeOf(await app.ask('GET', '/mcp/demo', { headers })), '409 -32000');
  assert.not.ok(socket.closed);
  socket.destroy();
  await assertUnharmed(session, 'a second stream');
});

test('a batch of revision 2025-03-26: 400 for 101 messages, 200 for two', async () => {
  const session = await open('2025-03-26');
  const post = (body: unknown) =>
    app.as(app.user, 'POST', '/mcp/demo', { body, headers: { ...MCP_TYPES, ...session } });
  const many = Array.from({ length: 101 }, (_, id) => ({ ...ping, id }));
  assert.is(codeOf(await post(many)), '400 -32600');
  const few = await post(many.slice(0, 2));
  assert.equal([few.status, messagesOf(few).length], [200, 2]);
  await assertUnharmed(session, 'a list');
});

const { body: listing, headers: named } = modern('tools/list');
const { body: calling } = modern('tools/call', { name: 'name', arguments: {} });
const { headers: called } = modern('tools/call');
const { 'mcp-method': _, ...unnamed } = named;
const FUTURE = '2099-01-01';
const ofFuture = rpc('tools/list', { _meta: { ...listing.params._meta, [META.protocolVersion]: FUTURE } });

/** Mistakes of a stateless client. */
const STATELESS: readonly (readonly [what: string, expected: string, body: unknown, headers: Headers])[] = [
  ['a valid request', '200', listing, named],
  ['no Mcp-Method', '400 -32020', listing, unnamed],
  ['another Mcp-Method than in the body', '400 -32020', listing, { ...named, 'mcp-method': 'prompts/list' }],
  ['another version than in the body', '400 -32020', listing, { ...named, 'mcp-protocol-version': VERSION }],
  ['no Mcp-Name', '400 -32020', calling, called],
  ['another Mcp-Name than in the body', '400 -32020', calling, { ...called, 'mcp-name': 'other' }],
  ['no _meta', '400 -32602', { ...listing, params: {} }, named],
  ['an unknown protocol version', '400 -32022', ofFuture, { ...named, 'mcp-protocol-version': FUTURE }],
  ['an unknown method', '404 -32601', modern('no/such').body, modern('no/such').headers],
  ['a batch', '400 -32600', [listing], named],
  ['GET', '405 -32000', undefined, unnamed],
  ['DELETE', '405 -32000', undefined, unnamed],
];

for (const [what, expected, body, headers] of STATELESS) {
  test(`from a stateless client, ${what}: ${expected}`, async () => {
    const method = body === undefined ? what : 'POST';
    const answer = await app.as(app.user, method, '/mcp/demo', { headers, body });
    assert.is(codeOf(answer), expected, answer.text);
    assert.is(answer.headers.get('mcp-session-id'), null);
    if (answer.status === 405) assert.is(answer.headers.get('allow'), 'POST');
  });
}

test.run();
