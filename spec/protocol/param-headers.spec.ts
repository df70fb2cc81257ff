import * as assert from 'uvu/assert';
import type { JsonFields, JsonObject } from '../../src/domain/json.ts';
import type { Tool } from '../../src/domain/mcp.ts';
import { ParamHeaders, paramHeadersIn } from '../../src/protocol/modern/param-headers.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

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
  const mismatch = new ParamHeaders().mismatch(of, given, headers);
  if (mismatch === undefined) return 'passes';
  assert.instance(mismatch, RpcFailure);
  assert.equal([mismatch.status, mismatch.error.code], [400, -32020]);
  return mismatch.message.replace(/^.*disagree: /, '');
}

test('are found among others', () => {
  assert.equal(paramHeadersIn({ accept: 'x', ...written, 'mcp-name': 'y' }), written);
  assert.is(paramHeadersIn({ accept: 'x', 'mcp-parameter': 'y' }), undefined);
});

test('pass when they say what the body says', () => {
  assert.is(outcome(written), 'passes');
  assert.is(outcome({ ...written, 'mcp-param-size': '42.0' }), 'passes');
  assert.is(outcome({ ...written, 'mcp-param-size': ' 42 ' }), 'passes');
  assert.is(outcome({ ...written, 'mcp-param-dry': '=?base64?ZmFsc2U=?=' }), 'passes');
  assert.is(outcome({ 'mcp-param-region': 'ignored' }, {}), 'passes');
  assert.is(outcome({}, { region: null }), 'passes');
  assert.is(outcome({}, 'no arguments at all'), 'passes');
});

test('are refused when they are missing, differ, or are badly encoded', () => {
  const missing = { ...written, 'mcp-param-region': undefined };
  assert.is(outcome(missing), 'mcp-param-region is missing, but the body has "region"');
  assert.match(outcome({ ...written, 'mcp-param-size': '43' }), /something else than "size"/);
  assert.match(outcome({ ...written, 'mcp-param-size': '0x2a' }), /something else/);
  assert.match(outcome({ ...written, 'mcp-param-dry': 'False' }), /something else/);
  assert.match(outcome({ ...written, 'mcp-param-deep-er': 'y' }), /something else than "deep.er"/);
  assert.match(outcome({ ...written, 'mcp-param-region': '=?base64?Z3LDvMOfZQ?=' }), /not canonical/);
  assert.match(outcome({ ...written, 'mcp-param-region': '=?base64?Z3!LD?=' }), /not canonical/);
});

test('take what is not wrapped as it is', () => {
  const only = toolWith({ a: { type: 'string', 'x-mcp-header': 'A' } });
  for (const text of ['SGVsbG8=', '=?base64?SGVsbG8=', 'SGVsbG8=?=']) {
    assert.is(outcome({ 'mcp-param-a': text }, { a: text }, only), 'passes', text);
  }
});

test('are not asked for by a schema that breaks the rules', () => {
  const declared = { type: 'string', 'x-mcp-header': 'A' };
  const invalid: readonly Tool[] = [
    toolWith({ a: declared, b: { type: 'string', 'x-mcp-header': 'a' } }),
    toolWith({ a: { ...declared, type: 'object' } }),
    toolWith({ a: { ...declared, type: ['string', 'null'] } }),
    toolWith({ a: { 'x-mcp-header': 'A' } }),
    toolWith({ a: { ...declared, 'x-mcp-header': '' } }),
    toolWith({ a: { ...declared, 'x-mcp-header': 'A B' } }),
    toolWith({ a: { ...declared, 'x-mcp-header': 7 } }),
    toolWith({ a: declared }, { 'x-mcp-header': 'Root' }),
    toolWith({ a: declared, list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'B' } } }),
    toolWith({ a: declared }, { oneOf: [{ properties: { b: { type: 'string', 'x-mcp-header': 'B' } } }] }),
    toolWith({ a: declared }, { $defs: { b: { type: 'string', 'x-mcp-header': 'B' } } }),
  ];
  for (const one of invalid) {
    assert.is(outcome({}, { a: 'x' }, one), 'passes');
  }
});

test.run();
