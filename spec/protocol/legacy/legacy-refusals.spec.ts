// Bad input to the legacy endpoint: it opens, counts and changes nothing, and the session remains usable. Statuses and codes are
// those of the SDK's servers; more rows are in http/mcp/endpoint.spec.ts, over a real port.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { legacyHarness, notification, type Refusal, request } from './legacy-harness.ts';

const test = suite('legacy refusals');

simulateTime(test);

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
  ['an empty session', BAD_REQUEST, CALL, { 'mcp-session-id': '' }],
  ['two sessions', UNKNOWN, CALL, { 'mcp-session-id': 'one, one' }],
  ["a notification in another owner's session", UNKNOWN, notification('x'), { principal: 'bob' }],
  [
    "an answer in another owner's session",
    UNKNOWN,
    { jsonrpc: '2.0', id: 1, result: {} },
    { principal: 'bob' },
  ],
  ['a revision without sessions', BAD_REQUEST, CALL, { 'mcp-protocol-version': '2026-07-28' }],
  ['an empty revision', BAD_REQUEST, CALL, { 'mcp-protocol-version': '' }],
  ['two revisions', BAD_REQUEST, CALL, { 'mcp-protocol-version': '2025-11-25, 2025-11-25' }],
  ['null', NO_MESSAGE, null],
  ['no JSON-RPC', refusal(400, -32600, 1), { id: 1, method: 'ping' }],
  ['a method that is a number', refusal(400, -32600, 1), { jsonrpc: '2.0', id: 1, method: 7 }],
  ['an id that is true', NO_MESSAGE, request(true, 'ping')],
  ['params in an array', refusal(400, -32600, 1), { ...CALL, params: [1] }],
  ['a request without an id', NO_MESSAGE, { ...CALL, id: null }],
  ['an answer without a result', NO_MESSAGE, { jsonrpc: '2.0', id: 1 }],
  [
    'an answer of both kinds',
    NO_MESSAGE,
    { jsonrpc: '2.0', id: 1, result: {}, error: { code: 1, message: '' } },
  ],
  ['an answer without an id', NO_MESSAGE, { jsonrpc: '2.0', result: {} }],
  ['an error without a code', NO_MESSAGE, { jsonrpc: '2.0', id: 1, error: { message: '' } }],
  ['an array', NO_MESSAGE, [CALL]],
];

test('a POST that is refused changes and counts nothing', async () => {
  for (const [what, expected, body, headers] of POSTS) {
    const { post, session, charges, endpoint, call } = legacyHarness();
    const { reply, done } = post(body, headers);
    assert.equal(await done, expected, what);
    const found = [reply.isAnswered, session.exchanges.length, charges.length, session.notes.length];
    assert.equal([...found, endpoint.openTraffic], [false, 0, 0, 0, 0], what);
    const next = call(1);
    session.last.result();
    assert.is(next.reply.status, 200, what);
  }
});

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

test('initialize with invalid parameters: 400, -32602', async () => {
  for (const [what, params] of HELLOS) {
    const { post, backends } = legacyHarness();
    const { done } = post(request(9, 'initialize', params), { 'mcp-session-id': undefined });
    assert.equal(await done, refusal(400, -32602, 9), what);
    assert.is(backends.opened.length, 0);
  }
});

const TOO_LONG = 'x'.repeat(8 * 1024 + 1);

test('references that are too long, no text, or in a field that only some servers read, are answered with -32602', async () => {
  for (const [method, params] of [
    ['tools/list', { cursor: TOO_LONG }],
    ['resources/read', { uri: TOO_LONG }],
    ['resources/subscribe', { uri: TOO_LONG }],
    ['resources/unsubscribe', { uri: TOO_LONG }],
    ['tools/list', { cursor: [TOO_LONG] }],
    ['tasks/list', { cursor: 1 }],
    ['resources/read', { uri: ['x:1'] }],
    ['resources/unsubscribe', { uri: { toString: 'x:1' } }],
    ['tasks/get', { taskId: ['1'] }],
    ['tools/call', { name: ['secret'] }],
    ['tools/call', { name: null }],
    ['tools/call', { arguments: {} }],
    ['prompts/get', { name: { toString: 'secret' } }],
    ['tools/call', { name: 'open', Name: 'secret' }],
    ['tools/call', { NAME: 'secret' }],
    ['tools/call', { name: 'open', ARGUMENT\u017f: {} }], // a long s, in which they agree, too
    ['prompts/get', { name: 'open', nAme: 'secret' }],
    ['resources/subscribe', { uri: 'x:1', Uri: 'x:2' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'open' }, Ref: {} }],
    ['tasks/result', { taskId: '1', tas\u212aid: '2' }],
    ['tasks/list', { Cursor: '1' }],
  ] as const) {
    const { post, session, left } = legacyHarness();
    const { reply, done } = post(request(1, method, params));
    assert.is(await done, undefined);
    assert.is(Object(reply.message.error).code, -32602, method);
    assert.equal([session.exchanges.length, left()], [0, 0]);
  }
});

test.run();
