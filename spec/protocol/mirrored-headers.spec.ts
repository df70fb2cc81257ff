import * as assert from 'uvu/assert';
import { checkMirroredHeaders, checkSentHeaders } from '../../src/protocol/headers.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('mirrored headers');

const VERSION = '2026-07-28';

/** 'passes', or what is wrong; status and code are always the same. */
function outcome(check: () => void): string {
  try {
    check();
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    assert.is(thrown.status, 400);
    assert.is(thrown.error.code, -32020);
    return thrown.message.replace(/^.*disagree: /, '');
  }
  return 'passes';
}

const call = { method: 'tools/call', params: { name: 'add' }, protocolVersion: VERSION };
const headers = { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/call', 'mcp-name': 'add' };

const TABLE: readonly [change: Record<string, string | undefined>, expected: string][] = [
  [{}, 'passes'],
  [{ 'mcp-protocol-version': ` ${VERSION}\t` }, 'passes'],
  [{ 'mcp-method': '  tools/call ' }, 'passes'],
  [{ 'mcp-name': '\t add  ' }, 'passes'],
  [{ 'mcp-name': '=?base64?YWRk?=' }, 'passes'],
  [{ 'mcp-protocol-version': undefined }, 'MCP-Protocol-Version is missing'],
  [{ 'mcp-protocol-version': '2025-11-25' }, 'MCP-Protocol-Version names another revision than the body'],
  [{ 'mcp-protocol-version': '' }, 'MCP-Protocol-Version names another revision than the body'],
  [{ 'mcp-method': undefined }, 'Mcp-Method is missing'],
  [{ 'mcp-method': 'TOOLS/CALL' }, 'Mcp-Method names another method than the body'],
  [{ 'mcp-method': 'tools/list' }, 'Mcp-Method names another method than the body'],
  [{ 'mcp-name': undefined }, 'Mcp-Name is missing'],
  [{ 'mcp-name': 'Add' }, 'Mcp-Name names something else than the body'],
  [{ 'mcp-name': 'add, add' }, 'Mcp-Name names something else than the body'],
  [{ 'mcp-name': '=?base64?YWRk' }, 'Mcp-Name names something else than the body'],
  [{ 'mcp-name': '=?base64?YWR?=' }, 'Mcp-Name is not canonical Base64 of UTF-8'],
  [{ 'mcp-name': '=?base64?YW Rk?=' }, 'Mcp-Name is not canonical Base64 of UTF-8'],
  [{ 'mcp-name': '=?base64?/w==?=' }, 'Mcp-Name is not canonical Base64 of UTF-8'],
];

test('must be there and say what the body says', () => {
  for (const [change, expected] of TABLE) {
    assert.is(
      outcome(() => checkMirroredHeaders({ ...headers, ...change }, call)),
      expected,
      JSON.stringify(change),
    );
  }
});

test('name the resource, the prompt or the task that a request is about', () => {
  const about: readonly [method: string, params: Record<string, string>][] = [
    ['prompts/get', { name: 'x' }],
    ['resources/read', { uri: 'x' }],
    ['tasks/get', { taskId: 'x' }],
    ['tasks/update', { taskId: 'x' }],
    ['tasks/cancel', { taskId: 'x' }],
  ];
  for (const [method, params] of about) {
    const request = { method, params, protocolVersion: VERSION };
    const sent = { ...headers, 'mcp-method': method };
    assert.is(
      outcome(() => checkMirroredHeaders({ ...sent, 'mcp-name': 'x' }, request)),
      'passes',
    );
    assert.not.match(
      outcome(() => checkMirroredHeaders({ ...sent, 'mcp-name': 'y' }, request)),
      /passes/,
    );
    assert.match(
      outcome(() => checkMirroredHeaders({ ...sent, 'mcp-name': undefined }, request)),
      /missing/,
    );
  }
});

test('need no name where the method has none', () => {
  const request = { method: 'tools/list', params: {}, protocolVersion: VERSION };
  const sent = { ...headers, 'mcp-method': 'tools/list', 'mcp-name': undefined };
  assert.is(
    outcome(() => checkMirroredHeaders(sent, request)),
    'passes',
  );
});

test('leave a body that names nothing to the backend, but let no header name something for it', () => {
  const request = { ...call, params: {} };
  assert.is(
    outcome(() => checkMirroredHeaders({ ...headers, 'mcp-name': undefined }, request)),
    'passes',
  );
  assert.not.match(
    outcome(() => checkMirroredHeaders(headers, request)),
    /passes/,
  );
});

test('may be missing beside a notification, but not wrong', () => {
  const said = { method: 'notifications/x', protocolVersion: VERSION };
  const right = { 'mcp-protocol-version': VERSION, 'mcp-method': 'notifications/x' };
  assert.is(
    outcome(() => checkSentHeaders({}, said)),
    'passes',
  );
  assert.is(
    outcome(() => checkSentHeaders(right, said)),
    'passes',
  );
  for (const name of ['mcp-protocol-version', 'mcp-method']) {
    assert.match(
      outcome(() => checkSentHeaders({ ...right, [name]: 'x' }, said)),
      /than the body/,
    );
  }
});

test.run();
