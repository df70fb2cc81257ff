// Headers of requests: reading them, media types, and the headers that repeat fields of the body or arguments of a tool. The list of
// tools that decides is in modern/modern-endpoint.spec.ts; the headers of a call, in all combinations, in endpoint-like-sdk.spec.ts.

import * as assert from 'uvu/assert';
import type { JsonFields, JsonObject } from '../../src/domain/json/json.ts';
import type { Tool } from '../../src/domain/mcp/mcp.ts';
import type { HttpHeaders } from '../../src/domain/text.ts';
import { checkGetTypes, checkPostTypes } from '../../src/protocol/headers.ts';
import { ListedHeaders, paramHeadersIn } from '../../src/protocol/modern/listed-headers.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';
import { ScriptedBackends } from './scripted-backends.ts';

const test = suite('headers');

/** Status and code of the refusal, or the disagreement between header and body that it names. */
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

const TYPES = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

test('a POST must accept JSON and event streams, and contain JSON', () => {
  const table: readonly [headers: HttpHeaders, expected: string][] = [
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

test('a GET must accept event streams', () => {
  const ofGet = (accept?: string) => outcome(() => checkGetTypes({ accept }));
  for (const accept of [undefined, 'application/json']) assert.is(ofGet(accept), '406 -32000', accept);
  for (const accept of ['text/event-stream', 'text/*', '*/*']) assert.is(ofGet(accept), 'passes', accept);
});

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

function paramOutcome(
  headers: Record<string, string | undefined>,
  given: JsonFields[string] = args,
  of: Tool = tool,
): string {
  const backends = new ScriptedBackends();
  backends.tools.set('t', of);
  const params: JsonFields = { name: 't', arguments: given };
  const call = { method: 'tools/call', params, owner: { id: 'ann' }, backends };
  try {
    new ListedHeaders().check(call, headers);
    return 'passes';
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    assert.equal([thrown.status, thrown.error.code, backends.relistings], [400, -32020, ['t']]);
    return thrown.message.replace(/^.*disagree: /, '');
  }
}

test('mcp-param headers are found among others', () => {
  assert.equal(paramHeadersIn({ accept: 'x', ...written, 'mcp-name': 'y' }), written);
  assert.is(paramHeadersIn({ accept: 'x', 'mcp-parameter': 'y' }), undefined);
});

test('mcp-param headers pass when they equal the arguments in the body', () => {
  assert.is(paramOutcome(written), 'passes');
  assert.is(paramOutcome({ ...written, 'mcp-param-size': '42.0' }), 'passes');
  assert.is(paramOutcome({ ...written, 'mcp-param-dry': '=?base64?ZmFsc2U=?=' }), 'passes');
  assert.is(paramOutcome({ 'mcp-param-region': 'ignored' }, {}), 'passes');
  assert.is(paramOutcome({}, { region: null }), 'passes');
  assert.is(paramOutcome({}, 'no arguments at all'), 'passes');
  const found = paramOutcome({}, args, toolWith({ region: { type: 'array', 'x-mcp-header': 'Region' } }));
  assert.is(found, 'passes');
});

test('mcp-param headers are refused when they are missing, differ, or are badly encoded', () => {
  const missing = { ...written, 'mcp-param-region': undefined };
  assert.is(paramOutcome(missing), 'mcp-param-region is missing, but the body has "region"');
  assert.match(paramOutcome({ ...written, 'mcp-param-size': '43' }), /differs from "size"/);
  assert.match(paramOutcome({ ...written, 'mcp-param-size': '0x2a' }), /differs from/);
  assert.match(paramOutcome({ ...written, 'mcp-param-dry': 'False' }), /differs from/);
  assert.match(paramOutcome({ ...written, 'mcp-param-deep-er': 'y' }), /differs from "deep.er"/);
  assert.match(paramOutcome({ ...written, 'mcp-param-region': '=?base64?Z3LDvMOfZQ?=' }), /not canonical/);
  assert.match(paramOutcome({ ...written, 'mcp-param-region': '=?base64?Z3!LD?=' }), /not canonical/);
});

test.run();
