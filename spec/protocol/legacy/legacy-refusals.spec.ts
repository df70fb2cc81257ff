// Bad input to the legacy endpoint: status and code of each, and that the session remains usable.
// Statuses and codes are those of the SDK's servers. Media types are in media-types.spec.ts.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { legacyHarness, notification, type Refusal, request } from './legacy-harness.ts';

const test = suite('legacy refusals');

const CALL = request(1, 'tools/call', { name: 'add' });
const HELLO = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
const refusal = (status: number, code: number, id: Refusal['id'] = null): Refusal => ({ status, code, id });
const BAD_REQUEST = refusal(400, -32000);
const NO_MESSAGE = refusal(400, -32600);
const UNKNOWN = refusal(404, -32001);

type Row = readonly [
  what: string,
  expected: Refusal,
  body: unknown,
  headers?: Record<string, string | undefined>,
];

const POSTS: readonly Row[] = [
  ['no session', BAD_REQUEST, CALL, { 'mcp-session-id': undefined }],
  ['an empty session', BAD_REQUEST, CALL, { 'mcp-session-id': '' }],
  ['an unknown session', UNKNOWN, CALL, { 'mcp-session-id': 'two' }],
  ['two sessions', UNKNOWN, CALL, { 'mcp-session-id': 'one, one' }],
  ["another's session", UNKNOWN, CALL, { principal: 'bob' }],
  ["a notification in another's session", UNKNOWN, notification('x'), { principal: 'bob' }],
  ["an answer in another's session", UNKNOWN, { jsonrpc: '2.0', id: 1, result: {} }, { principal: 'bob' }],
  ['a revision nobody knows', BAD_REQUEST, CALL, { 'mcp-protocol-version': '1999-01-01' }],
  ['a revision without sessions', BAD_REQUEST, CALL, { 'mcp-protocol-version': '2026-07-28' }],
  ['an empty revision', BAD_REQUEST, CALL, { 'mcp-protocol-version': '' }],
  ['two revisions', BAD_REQUEST, CALL, { 'mcp-protocol-version': '2025-11-25, 2025-11-25' }],
  ['a number', NO_MESSAGE, 7],
  ['null', NO_MESSAGE, null],
  ['an empty object', NO_MESSAGE, {}],
  ['another JSON-RPC', NO_MESSAGE, { ...CALL, jsonrpc: '1.0' }],
  ['no JSON-RPC', NO_MESSAGE, { id: 1, method: 'ping' }],
  ['a method that is a number', NO_MESSAGE, { ...CALL, method: 1 }],
  ['an id that is null', NO_MESSAGE, request(null, 'ping')],
  ['an id that is an object', NO_MESSAGE, request({}, 'ping')],
  ['an id that is true', NO_MESSAGE, request(true, 'ping')],
  ['an id that is a fraction', NO_MESSAGE, request(1.5, 'ping')],
  ['params in an array', NO_MESSAGE, { ...CALL, params: [1] }],
  ['params that are null', NO_MESSAGE, { ...CALL, params: null }],
  ['an answer without a result', NO_MESSAGE, { jsonrpc: '2.0', id: 1 }],
  [
    'an answer of both kinds',
    NO_MESSAGE,
    { jsonrpc: '2.0', id: 1, result: {}, error: { code: 1, message: '' } },
  ],
  ['an answer without an id', NO_MESSAGE, { jsonrpc: '2.0', result: {} }],
  ['an error without a code', NO_MESSAGE, { jsonrpc: '2.0', id: 1, error: { message: '' } }],
  ['an array', NO_MESSAGE, [CALL]],
  ['an empty array', NO_MESSAGE, []],
];

for (const [what, expected, body, headers] of POSTS) {
  test(`a POST with ${what}: ${expected.status}, ${expected.code}`, async () => {
    const { post, session, charges, endpoint, call } = legacyHarness();
    const { reply, done } = post(body, headers);
    assert.equal(await done, expected);
    const found = [reply.isAnswered, session.exchanges.length, charges.length, session.notes.length];
    assert.equal(found, [false, 0, 0, 0]);
    assert.is(endpoint.conversations, 0);
    const next = call(1);
    session.last.result();
    assert.is(next.reply.status, 200, 'the session is unharmed');
  });
}

const HELLOS: readonly (readonly [what: string, params: unknown])[] = [
  ['nothing', undefined],
  ['no revision', { ...HELLO, protocolVersion: undefined }],
  ['a revision that is a number', { ...HELLO, protocolVersion: 20251125 }],
  ['no capabilities', { ...HELLO, capabilities: undefined }],
  ['capabilities in an array', { ...HELLO, capabilities: [] }],
  ['no client', { ...HELLO, clientInfo: undefined }],
  ['a client without a version', { ...HELLO, clientInfo: { name: 'c' } }],
  ['a client that is too large', { ...HELLO, clientInfo: { name: 'c', version: 'v'.repeat(40_000) } }],
];

for (const [what, params] of HELLOS) {
  test(`initialize with ${what}: 400, -32602`, async () => {
    const { post, backends } = legacyHarness();
    const { done } = post(request(9, 'initialize', params), { 'mcp-session-id': undefined });
    assert.equal(await done, refusal(400, -32602, 9));
    assert.is(backends.opened.length, 0);
  });
}

const GETS: readonly (readonly [string, Refusal, Record<string, string | undefined>])[] = [
  ['no session', BAD_REQUEST, { 'mcp-session-id': undefined }],
  ['an unknown session', UNKNOWN, { 'mcp-session-id': 'two' }],
  ["another's session", UNKNOWN, { principal: 'bob' }],
  ['a revision nobody knows', BAD_REQUEST, { 'mcp-protocol-version': 'x' }],
  ['no Accept', refusal(406, -32000), { accept: undefined }],
  ['Accept of JSON only', refusal(406, -32000), { accept: 'application/json' }],
  ['an event that is none', BAD_REQUEST, { 'last-event-id': '../../x' }],
  ['an event of no stream', BAD_REQUEST, { 'last-event-id': '77.1' }],
];

for (const [what, expected, headers] of GETS) {
  test(`a GET with ${what}: ${expected.status}, ${expected.code}`, async () => {
    const { send, endpoint, session } = legacyHarness();
    const { reply, done } = send('GET', undefined, headers);
    assert.equal(await done, expected);
    assert.equal([reply.isAnswered, endpoint.conversations, session.holds], [false, 0, 0]);
  });
}

const TOO_LONG = 'x'.repeat(8 * 1024 + 1);

for (const [method, params] of [
  ['tools/list', { cursor: TOO_LONG }],
  ['resources/read', { uri: TOO_LONG }],
  ['resources/subscribe', { uri: TOO_LONG }],
  ['resources/unsubscribe', { uri: TOO_LONG }],
] as const) {
  test(`${method} with a text that is too long is answered with -32602`, async () => {
    const { post, session, endpoint } = legacyHarness();
    const { reply, done } = post(request(1, method, params));
    assert.is(await done, undefined);
    assert.is(Object(reply.message.error).code, -32602);
    assert.equal([session.exchanges.length, endpoint.conversations], [0, 0]);
  });
}

test('a second GET stream: 409, -32000, and the first continues', async () => {
  const { listen, session } = legacyHarness();
  const first = listen();
  assert.equal(await listen().done, refusal(409, -32000));
  session.messages.next({ kind: 'notification', method: 'notifications/tools/list_changed', params: {} });
  assert.is(first.reply.events.messages.length, 1);
});

test("a DELETE of another's session: 404, and it goes on", async () => {
  const { send, session } = legacyHarness();
  assert.equal(await send('DELETE', undefined, { principal: 'bob' }).done, UNKNOWN);
  assert.is(session.isClosed, false);
});

test('a missing or older revision header is accepted', async () => {
  const { post, session } = legacyHarness();
  const variants: Record<string, string | undefined>[] = [
    { 'mcp-protocol-version': undefined },
    { 'mcp-protocol-version': '2024-10-07' },
  ];
  for (const headers of variants) {
    const { reply } = post(CALL, headers);
    session.last.result();
    assert.is(reply.status, 200, JSON.stringify(headers));
  }
});

test.run();
