// Headers of requests: reading them, media types, and the headers that repeat fields of the body.

import * as assert from 'uvu/assert';
import {
  checkGetTypes,
  checkMirroredHeaders,
  checkPostTypes,
  checkSentHeaders,
  headerOf,
  type RequestHeaders,
} from '../../src/protocol/headers.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('headers');

/** The checks of a request, in the order of the endpoint. */
function checkRequest(
  headers: RequestHeaders,
  request: Parameters<typeof checkSentHeaders>[1] & Parameters<typeof checkMirroredHeaders>[1],
): void {
  checkSentHeaders(headers, request);
  checkMirroredHeaders(headers, request);
}

/** Status and code of the refusal, and what it says of headers that disagree with the body. */
function outcome(check: () => void): string {
  try {
    check();
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    const { status, error } = thrown;
    return error.code === -32020 && status === 400
      ? thrown.message.replace(/^.*disagree: /, '')
      : `${status} ${error.code}`;
  }
  return 'passes';
}

test('come without the space around them, both when they came twice, and may be missing', () => {
  assert.equal([headerOf({ x: ' \t a b\t ' }, 'x'), headerOf({ x: ' \t ' }, 'x')], ['a b', '']);
  assert.equal([headerOf({ x: ['1', '2'] }, 'x'), headerOf({}, 'x')], ['1, 2', undefined]);
});

test('are trimmed in linear time', () => {
  const value = `a${' '.repeat(60_000)}b`;
  assert.is(headerOf({ x: value }, 'x'), value);
});

const TYPES = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

test('of a POST have to take JSON and events, and say JSON', () => {
  const table: readonly [headers: RequestHeaders, expected: string][] = [
    [{}, 'passes'],
    [{ accept: '*/*' }, 'passes'],
    [{ accept: 'application/*, text/*;q=0.5' }, 'passes'],
    [{ accept: 'text/event-stream,application/json;q=0.9' }, 'passes'],
    [{ 'content-type': 'Application/JSON; charset=utf-8' }, 'passes'],
    [{ accept: undefined }, '406 -32000'],
    [{ accept: 'application/json' }, '406 -32000'],
    [{ accept: 'text/event-stream' }, '406 -32000'],
    [{ accept: 'application/json5, text/event-stream' }, '406 -32000'],
    [{ 'content-type': undefined }, '415 -32000'],
    [{ 'content-type': '' }, '415 -32000'],
    [{ 'content-type': 'text/plain' }, '415 -32000'],
    [{ 'content-type': 'application/json5' }, '415 -32000'],
  ];
  for (const [headers, expected] of table)
    assert.is(
      outcome(() => checkPostTypes({ ...TYPES, ...headers })),
      expected,
      JSON.stringify(headers),
    );
});

test('of a GET have to take events', () => {
  const ofGet = (accept?: string) => outcome(() => checkGetTypes({ accept }));
  for (const accept of [undefined, 'application/json']) assert.is(ofGet(accept), '406 -32000', accept);
  for (const accept of ['text/event-stream', 'text/*', '*/*']) assert.is(ofGet(accept), 'passes', accept);
});

const VERSION = '2026-07-28';
const CALL = { method: 'tools/call', params: { name: 'add' }, protocolVersion: VERSION };
const HEADERS = { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/call', 'mcp-name': 'add' };
const OTHER_NAME = 'Mcp-Name differs from the name in the body';
const NOT_CANONICAL = 'Mcp-Name is not canonical Base64 of UTF-8';

test('mirrored headers must be present and equal the body', () => {
  const table: (readonly [change: Record<string, string | undefined>, expected: string])[] = [
    [{}, 'passes'],
    [{ 'mcp-protocol-version': ` ${VERSION}\t` }, 'passes'],
    [{ 'mcp-method': '  tools/call ' }, 'passes'],
    [{ 'mcp-name': '\t add  ' }, 'passes'],
    [{ 'mcp-name': '=?base64?YWRk?=' }, 'passes'],
    [{ 'mcp-protocol-version': undefined }, 'MCP-Protocol-Version is missing'],
    [
      { 'mcp-protocol-version': '2025-11-25' },
      'MCP-Protocol-Version names a different revision than the body',
    ],
    [{ 'mcp-protocol-version': '' }, 'MCP-Protocol-Version names a different revision than the body'],
    [{ 'mcp-method': undefined }, 'Mcp-Method is missing'],
    [{ 'mcp-method': 'TOOLS/CALL' }, 'Mcp-Method names a different method than the body'],
    [{ 'mcp-method': 'tools/list' }, 'Mcp-Method names a different method than the body'],
    [{ 'mcp-name': undefined }, 'Mcp-Name is missing'],
    ...['Add', 'add, add', '=?base64?YWRk'].map((name) => [{ 'mcp-name': name }, OTHER_NAME] as const),
    ...['=?base64?YWR?=', '=?base64?YW Rk?=', '=?base64?/w==?='].map(
      (name) => [{ 'mcp-name': name }, NOT_CANONICAL] as const,
    ),
  ];
  for (const [change, expected] of table)
    assert.is(
      outcome(() => checkRequest({ ...HEADERS, ...change }, CALL)),
      expected,
      JSON.stringify(change),
    );
});

test('name the resource, the prompt or the task that a request is about', () => {
  for (const [method, params] of [
    ['prompts/get', { name: 'x' }],
    ['resources/read', { uri: 'x' }],
    ['tasks/get', { taskId: 'x' }],
    ['tasks/update', { taskId: 'x' }],
    ['tasks/cancel', { taskId: 'x' }],
  ] as const) {
    const said = ['x', 'y', undefined].map((name) =>
      outcome(() =>
        checkRequest(
          { ...HEADERS, 'mcp-method': method, 'mcp-name': name },
          { method, params, protocolVersion: VERSION },
        ),
      ),
    );
    assert.equal(said, ['passes', OTHER_NAME, 'Mcp-Name is missing'], method);
  }
});

test('need no name where the method or the body has none, but let no header name something for it', () => {
  const unnamed = { ...HEADERS, 'mcp-name': undefined };
  const list = { method: 'tools/list', params: {}, protocolVersion: VERSION };
  const found = outcome(() => checkRequest({ ...unnamed, 'mcp-method': 'tools/list' }, list));
  assert.is(found, 'passes');
  const seen = outcome(() => checkRequest(unnamed, { ...CALL, params: {} }));
  assert.is(seen, 'passes');
  assert.is.not(
    outcome(() => checkRequest(HEADERS, { ...CALL, params: {} })),
    'passes',
  );
});

test('that repeat the body may be missing beside a notification, but not wrong', () => {
  const said = { method: 'notifications/x', protocolVersion: VERSION };
  const right = { 'mcp-protocol-version': VERSION, 'mcp-method': 'notifications/x' };
  for (const headers of [{}, right])
    assert.is(
      outcome(() => checkSentHeaders(headers, said)),
      'passes',
    );
  for (const name of ['mcp-protocol-version', 'mcp-method'])
    assert.match(
      outcome(() => checkSentHeaders({ ...right, [name]: 'x' }, said)),
      /than the body/,
    );
});

test.run();
