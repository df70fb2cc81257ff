// What clients get wrong at the MCP endpoint, and what they are told: a table for each era. How it is sent, and that the
// session survives it, is mcp-bad-input.spec.ts.
// Sources: MCP 2025-11-25 basic/transports; MCP 2026-07-28 basic/transports/streamable-http, basic/index; JSON-RPC 2.0.

import { META } from '../../../src/domain/mcp.ts';
import type { Json } from '../../fixtures/wire.ts';
import {
  envelope,
  type LegacyClient,
  type ModernClient,
  POST_HEADERS,
  requestText,
} from '../../helpers/mcp-client.ts';
import type { Received } from '../../helpers/mcp-wire.ts';

/** What a row may use. */
export interface Victims {
  readonly legacy: LegacyClient;
  readonly modern: ModernClient;
  /** Credentials of somebody else. */
  readonly stranger: Readonly<Record<string, string>>;
}

/** `code` undefined: the answer carries none. */
export interface Row {
  readonly name: string;
  readonly status: number;
  readonly code?: number;
  readonly send: (victims: Victims) => Promise<Received>;
}

type Headers = Readonly<Record<string, string | undefined>>;

const list = requestText(1, 'tools/list');
const foreignId = 'A'.repeat(43);
const deep = `${'['.repeat(200)}${']'.repeat(200)}`;
/** Over the 4 MiB that a body may have. */
const oversize = requestText(1, 'tools/list', { text: 'x'.repeat(4 * 1024 * 1024) });
const rpc = (fields: Json): string => JSON.stringify({ jsonrpc: '2.0', ...fields });

function post(
  name: string,
  status: number,
  code: number | undefined,
  body: string,
  headers: Headers = {},
): Row {
  return row(name, status, code, ({ legacy }) => legacy.send(body, headers));
}

/** A request without a body, in the session unless a header says otherwise. */
function bare(
  method: 'GET' | 'DELETE',
  name: string,
  status: number,
  code: number,
  headers: Headers = {},
): Row {
  return row(name, status, code, ({ legacy }) =>
    legacy.wire.exchange(legacy.path, {
      method,
      headers: { ...legacy.headers, 'Content-Type': undefined, ...headers },
    }),
  );
}

function byStranger(method: 'POST' | 'GET' | 'DELETE'): Row {
  return row(`the session of somebody else, ${method}`, 404, -32001, ({ legacy, stranger }) =>
    legacy.wire.exchange(legacy.path, {
      method,
      headers: { ...legacy.headers, ...stranger },
      body: method === 'POST' ? list : undefined,
    }),
  );
}

function row(name: string, status: number, code: number | undefined, send: Row['send']): Row {
  return code === undefined ? { name, status, send } : { name, status, code, send };
}

export const LEGACY_ROWS: readonly Row[] = [
  post('a revision that nobody knows', 400, -32000, list, { 'MCP-Protocol-Version': '1999-01-01' }),
  post('a revision that is no date', 400, -32000, list, { 'MCP-Protocol-Version': 'new' }),
  post('no revision', 200, undefined, list, { 'MCP-Protocol-Version': undefined }),
  post('the modern revision and no envelope', 400, -32602, list, {
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/list',
  }),
  post('no session', 400, -32000, list, { 'Mcp-Session-Id': undefined }),
  post('an empty session', 400, -32000, list, { 'Mcp-Session-Id': '' }),
  post('an unknown session', 404, -32001, list, { 'Mcp-Session-Id': foreignId }),
  post('a session of 10,000 characters', 404, -32001, list, { 'Mcp-Session-Id': 'x'.repeat(10_000) }),
  bare('GET', 'an unknown session, GET', 404, -32001, { 'Mcp-Session-Id': foreignId }),
  bare('DELETE', 'an unknown session, DELETE', 404, -32001, { 'Mcp-Session-Id': foreignId }),
  byStranger('POST'),
  byStranger('GET'),
  byStranger('DELETE'),
  row('the session of another template', 404, -32001, ({ legacy }) =>
    legacy.wire.exchange('/mcp/other', { headers: legacy.headers, body: list }),
  ),
  post('no Accept', 406, -32000, list, { Accept: undefined }),
  post('Accept without event streams', 406, -32000, list, { Accept: 'application/json' }),
  bare('GET', 'GET without Accept of event streams', 406, -32000, { Accept: 'application/json' }),
  post('no content type', 415, -32000, list, { 'Content-Type': undefined }),
  post('text as content type', 415, -32000, list, { 'Content-Type': 'text/plain' }),
  post('too large', 413, -32000, oversize),
  post('a batch', 400, -32600, `[${list}]`),
  post('an empty batch', 400, -32600, '[]'),
  post('not JSON', 400, -32700, '{"jsonrpc":'),
  post('nothing', 400, -32700, ''),
  post(
    'nested too deeply',
    400,
    -32600,
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${deep}}}`,
  ),
  post('a number', 400, -32600, '1'),
  post('no jsonrpc', 400, -32600, '{"id":1,"method":"tools/list"}'),
  post('another jsonrpc', 400, -32600, '{"jsonrpc":"1.0","id":1,"method":"tools/list"}'),
  post('a method that is a number', 400, -32600, rpc({ id: 1, method: 1 })),
  post('params that are an array', 400, -32600, rpc({ id: 1, method: 'tools/list', params: [] })),
  ...[null, 1.5, true, {}, []].map((id) =>
    post(`the id ${JSON.stringify(id)}`, 400, -32600, rpc({ id, method: 'tools/list' })),
  ),
  post('initialize again', 400, -32600, requestText(1, 'initialize', { protocolVersion: '2025-11-25' })),
  post('an answer to nothing', 202, undefined, rpc({ id: 'nobody-asked', result: {} })),
  post('an error answer to nothing', 202, undefined, rpc({ id: 0, error: { code: 1, message: 'no' } })),
  post('an answer that is both', 400, -32600, rpc({ id: 1, result: {}, error: { code: 1, message: 'no' } })),
  post(
    'a cancel of nothing',
    202,
    undefined,
    rpc({ method: 'notifications/cancelled', params: { requestId: 9 } }),
  ),
  post('a notification that nobody knows', 202, undefined, rpc({ method: 'notifications/nonsense' })),
  post('a method that nobody knows', 200, -32601, requestText(1, 'nonsense/do')),
  // The code that the server itself has for it; servers of the legacy era have -32002 more often.
  post('a resource that is not there', 200, -32602, requestText(1, 'resources/read', { uri: 'test://none' })),
  bare('GET', 'GET after an event that never was', 400, -32000, { 'Last-Event-ID': 'zzz.1' }),
  bare('GET', 'GET after what is no event', 400, -32000, { 'Last-Event-ID': '../..' }),
];

/** A modern request with something wrong in headers or `_meta`; undefined leaves one out. */
function modern(
  name: string,
  status: number,
  code: number | undefined,
  { method = 'tools/call', params = { name: 'test_simple_text' }, headers = {}, meta = {}, id = 1 }: Wrong,
): Row {
  return row(name, status, code, ({ modern: client }) => {
    const right = client.request(method, params);
    const _meta = { ...envelope(), ...meta };
    const body = rpc({ id, method, params: { ...params, _meta } });
    return client.wire.exchange(client.path, { headers: { ...right.headers, ...headers }, body });
  });
}

interface Wrong {
  readonly method?: string;
  readonly params?: Json;
  readonly headers?: Headers;
  readonly meta?: Json;
  readonly id?: unknown;
}

/** Any body under the headers of a correct tools/list. */
function modernBody(name: string, status: number, code: number, body: string, headers: Headers = {}): Row {
  return row(name, status, code, ({ modern: client }) => {
    const right = client.request('tools/list');
    return client.wire.exchange(client.path, { headers: { ...right.headers, ...headers }, body });
  });
}

function modernBare(method: 'GET' | 'DELETE'): Row {
  return row(`${method} in the modern era`, 405, -32000, ({ modern: client }) => {
    const { headers } = client.request('tools/list');
    return client.wire.exchange(client.path, { method, headers: { ...headers, 'Content-Type': undefined } });
  });
}

const mirrored = { name: 'test_x_mcp_header', arguments: { region: 'north' } };

export const MODERN_ROWS: readonly Row[] = [
  modern('no version header', 400, -32020, { headers: { 'MCP-Protocol-Version': undefined } }),
  modern('a version header that says something else', 400, -32020, {
    headers: { 'MCP-Protocol-Version': '2025-11-25' },
  }),
  modern('a revision that nobody knows', 400, -32022, {
    headers: { 'MCP-Protocol-Version': '2099-01-01' },
    meta: { [META.protocolVersion]: '2099-01-01' },
  }),
  modernBody('no envelope', 400, -32602, list),
  modern('no capabilities', 400, -32602, { meta: { [META.clientCapabilities]: undefined } }),
  modern('a progress token that is an object', 400, -32602, { meta: { progressToken: {} } }),
  modern('no method header', 400, -32020, { headers: { 'Mcp-Method': undefined } }),
  modern('a method header that says something else', 400, -32020, {
    headers: { 'Mcp-Method': 'tools/list' },
  }),
  modern('no name header', 400, -32020, { headers: { 'Mcp-Name': undefined } }),
  modern('a name header that says something else', 400, -32020, {
    headers: { 'Mcp-Name': 'Test_simple_text' },
  }),
  modern('a name header in broken base64', 400, -32020, { headers: { 'Mcp-Name': '=?base64?%?=' } }),
  modern('an argument header that says something else', 400, -32020, {
    params: mirrored,
    headers: { 'Mcp-Param-Region': 'south' },
  }),
  modern('no argument header', 400, -32020, { params: mirrored }),
  modern('a method that nobody knows', 404, -32601, { method: 'nonsense/do', params: {} }),
  modern('ping, which is of the other era', 404, -32601, { method: 'ping', params: {} }),
  modern('initialize, which is of the other era', 404, -32601, { method: 'initialize', params: {} }),
  modern('a state that was made up', 200, -32602, {
    params: { name: 'test_simple_text', requestState: 'made-up', inputResponses: {} },
  }),
  modern('a resource that is not there', 200, -32602, {
    method: 'resources/read',
    params: { uri: 'test://none' },
  }),
  modern('a session, which is ignored', 200, undefined, { headers: { 'Mcp-Session-Id': foreignId } }),
  modern('an event to go on from, which is ignored', 200, undefined, { headers: { 'Last-Event-ID': 'x.1' } }),
  ...[null, 1.5, {}, []].map((id) => modern(`the id ${JSON.stringify(id)}`, 400, -32600, { id })),
  modern('no Accept', 406, -32000, { headers: { Accept: undefined } }),
  modern('text as content type', 415, -32000, { headers: { 'Content-Type': 'text/plain' } }),
  modernBody('a batch', 400, -32600, `[${list}]`),
  modernBody('an answer', 400, -32600, rpc({ id: 1, result: {} })),
  modernBody('not JSON', 400, -32700, '{'),
  modernBody('too large', 413, -32000, oversize),
  modernBare('GET'),
  modernBare('DELETE'),
];

/** What is refused before anybody looks whether it is MCP at all. */
export const DOOR_ROWS: readonly Row[] = [
  row('no credentials', 401, undefined, ({ legacy }) =>
    legacy.wire.exchange(legacy.path, { headers: POST_HEADERS, body: list }),
  ),
  post('another origin', 403, undefined, list, { Origin: 'http://evil.example.com' }),
  row('a method that HTTP has and this endpoint has not', 405, undefined, ({ legacy }) =>
    legacy.wire.exchange(legacy.path, { method: 'PUT', headers: legacy.headers, body: list }),
  ),
  row('a template that is not there', 404, undefined, ({ legacy }) =>
    legacy.wire.exchange('/mcp/nowhere', { headers: legacy.headers, body: list }),
  ),
  row('1,000 headers', 431, undefined, ({ legacy }) => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`X-${index}`, 'x']));
    return legacy.send(list, many);
  }),
  post('a header of 100 kB', 431, undefined, list, { 'X-Large': 'x'.repeat(100_000) }),
];
