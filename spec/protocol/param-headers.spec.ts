// Headers that repeat arguments of a tool: the comparison with the body. The list of tools that decides is in modern/modern-endpoint.spec.ts.

import * as assert from 'uvu/assert';
import type { JsonFields, JsonObject } from '../../src/domain/json.ts';
import type { Tool } from '../../src/domain/mcp.ts';
import { ListedHeaders, paramHeadersIn } from '../../src/protocol/modern/param-headers.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';
import { ScriptedBackends } from './scripted-backends.ts';

const test = suite('param headers');

const toolWith = (properties: JsonObject, more: JsonObject = {}): Tool => ({
  name: 't',
  inputSchema: { type: 'object', properties, ...more },
});

const tool = toolWith({
  region: { type: 'string', 'x-mcp-header': 'Region' },
  size: { type: 'integer', 'x-mcp-header': 'size' },
  dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
  ratio: { type: 'number', 'x-mcp-header': 'Ratio' },
  other: { type: 'string' },
  deep: { type: 'object', properties: { er: { type: 'string', 'x-mcp-header': 'Deep-Er' } } },
});

const args = { region: 'grüße', size: 42, dry: false, ratio: 0.5, other: 'x', deep: { er: ' y' } };
const written = {
  'mcp-param-region': '=?base64?Z3LDvMOfZQ==?=',
  'mcp-param-size': '42',
  'mcp-param-dry': 'false',
  'mcp-param-ratio': '0.5',
  'mcp-param-deep-er': '=?base64?IHk=?=',
};

function outcome(
  headers: Record<string, string | undefined>,
  given: JsonFields[string] = args,
  of: Tool = tool,
): string {
  const backends = new ScriptedBackends();
  backends.tools.set('t', of);
  backends.onRelist = () => [of];
  const params: JsonFields = { name: 't', arguments: given };
  const call = { id: 1, method: 'tools/call', params, owner: { id: 'ann' }, template: 't', backends };
  try {
    assert.is(new ListedHeaders().check({ ...call, envelope: Object({}) }, headers), undefined);
    return 'passes';
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    assert.equal([thrown.status, thrown.error.code], [400, -32020]);
    return thrown.message.replace(/^.*disagree: /, '');
  }
}

test('are found among others', () => {
  assert.equal(paramHeadersIn({ accept: 'x', ...written, 'mcp-name': 'y' }), written);
  assert.is(paramHeadersIn({ accept: 'x', 'mcp-parameter': 'y' }), undefined);
});

test('pass when they equal the body', () => {
  assert.is(outcome(written), 'passes');
  assert.is(outcome({ ...written, 'mcp-param-size': '42.0' }), 'passes');
  assert.is(outcome({ ...written, 'mcp-param-size': ' 42 ' }), 'passes');
  assert.is(outcome({ ...written, 'mcp-param-dry': '=?base64?ZmFsc2U=?=' }), 'passes');
  assert.is(outcome({ 'mcp-param-region': 'ignored' }, {}), 'passes');
  assert.is(outcome({}, { region: null }), 'passes');
  assert.is(outcome({}, 'no arguments at all'), 'passes');
  assert.is(outcome({}, args, toolWith({ region: { type: 'array', 'x-mcp-header': 'Region' } })), 'passes');
});

test('are refused when they are missing, differ, or are badly encoded', () => {
  const missing = { ...written, 'mcp-param-region': undefined };
  assert.is(outcome(missing), 'mcp-param-region is missing, but the body has "region"');
  assert.match(outcome({ ...written, 'mcp-param-size': '43' }), /differs from "size"/);
  assert.match(outcome({ ...written, 'mcp-param-size': '0x2a' }), /differs from/);
  assert.match(outcome({ ...written, 'mcp-param-dry': 'False' }), /differs from/);
  assert.match(outcome({ ...written, 'mcp-param-deep-er': 'y' }), /differs from "deep.er"/);
  assert.match(outcome({ ...written, 'mcp-param-region': '=?base64?Z3LDvMOfZQ?=' }), /not canonical/);
  assert.match(outcome({ ...written, 'mcp-param-region': '=?base64?Z3!LD?=' }), /not canonical/);
});

test('compare texts that are not Base64 as they are', () => {
  const only = toolWith({ a: { type: 'string', 'x-mcp-header': 'A' } });
  for (const text of ['SGVsbG8=', '=?base64?SGVsbG8=', 'SGVsbG8=?=']) {
    assert.is(outcome({ 'mcp-param-a': text }, { a: text }, only), 'passes', text);
  }
});

test.run();
