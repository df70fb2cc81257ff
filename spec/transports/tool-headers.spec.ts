// Arguments that tools of a modern HTTP backend require in headers, and tools that declare this in an invalid way. How calls get
// the headers is in http-tool-headers.spec.ts.

import * as assert from 'uvu/assert';
import { type JsonObject, JsonText } from '../../src/domain/json/json.ts';
import { areTooLarge, MAX_HEADER_BYTES, ToolHeaders } from '../../src/transports/tool-headers.ts';
import { MODERN_HANDSHAKE as HANDSHAKE } from '../helpers/backends/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';

const declared = { type: 'string', 'x-mcp-header': 'Region' };

function tool(name: string, properties: JsonObject = { region: declared }): JsonObject {
  return { name, inputSchema: { type: 'object', properties }, title: name.toUpperCase() };
}

function page(tools: readonly unknown[], more: JsonObject = {}): JsonText {
  return JsonText.ofBytes(Buffer.from(JSON.stringify({ tools, ...more })));
}

function call(name: string): JsonObject {
  return { name, arguments: { region: 'x' } };
}

function learn(headers: ToolHeaders, list: JsonText): JsonText {
  return headers.checkTools({ method: 'tools/list' }, HANDSHAKE, list);
}

function headersFor(headers: ToolHeaders, params: JsonObject) {
  return headers.for({ method: 'tools/call', params }, HANDSHAKE);
}

const test = suite('tool headers');

test('a list without invalid tools, or that cannot be read, is unchanged', () => {
  const texts = ['{"tools":[{"name":"a"},7,null]}', '{"tools":7}', '[]', '{"tools":[{]}'];
  for (const text of texts) {
    const list = JsonText.ofBytes(Buffer.from(text));
    assert.is(learn(new ToolHeaders({}), list), list, text);
    assert.is(Buffer.from(list.bytes).toString(), text);
  }
});

test('headers of the oldest tools are forgotten when there are more than 10,000', () => {
  const headers = new ToolHeaders({});
  for (let at = 0; at <= 10_000; at += 1000) {
    learn(headers, page(Array.from({ length: 1000 }, (_, index) => tool(`tool-${at + index}`))));
  }
  assert.is(headersFor(headers, call('tool-0')), undefined);
  assert.equal(headersFor(headers, call('tool-10000')), { 'mcp-param-region': 'x' });
});

test('headers of the oldest tools are forgotten when tools with long names take too much memory', () => {
  const headers = new ToolHeaders({});
  const nameOf = (at: number) => `${at}-${'x'.repeat(100_000)}`;
  for (let at = 0; at < 250; at += 50)
    learn(headers, page(Array.from({ length: 50 }, (_, index) => tool(nameOf(at + index)))));
  assert.is(headersFor(headers, call(nameOf(0))), undefined);
  assert.equal(headersFor(headers, call(nameOf(249))), { 'mcp-param-region': 'x' });
});

test('headers of the oldest tools are forgotten when tools declare very many', () => {
  const headers = new ToolHeaders({});
  const properties = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, at) => [`a${at}`, { type: 'string', 'x-mcp-header': `A${at}` }]),
  );
  const many = (name: string) => tool(name, { region: declared, ...properties });
  for (let at = 0; at < 12; at += 1) learn(headers, page([many(`tool-${at}`)]));
  assert.is(headersFor(headers, call('tool-0')), undefined);
  assert.equal(headersFor(headers, call('tool-11')), { 'mcp-param-region': 'x' });
});

test('headers are too large above a number of bytes, names included', () => {
  const fitting = { 'mcp-param-a': 'x'.repeat(MAX_HEADER_BYTES - 'mcp-param-a: \r\n'.length) };
  assert.is(areTooLarge(fitting), false);
  assert.is(areTooLarge({ ...fitting, 'mcp-param-b': '' }), true);
});

test('headers are not learned from other results, or in another era', () => {
  const headers = new ToolHeaders({});
  const list = page([tool('one'), tool('bad', { a: { type: 'object', 'x-mcp-header': 'A' } })]);
  assert.is(headers.checkTools({ method: 'tools/call' }, HANDSHAKE, list), list);
  assert.is(headers.checkTools({ method: 'tools/list' }, { ...HANDSHAKE, era: 'legacy' }, list), list);
  assert.is(headersFor(headers, call('one')), undefined);
});

// Tools that are omitted from lists.

/** Properties of two tools with invalid declarations. */
const BAD = { a: { type: 'object', 'x-mcp-header': 'A' } };
const WORSE = { a: { type: 'string', 'x-mcp-header': 'A B' } };

test('tools are omitted that, with those before them that declare headers, have too many values for one turn', () => {
  const withheld: unknown[] = [];
  const headers = new ToolHeaders({ onWithheld: ({ tool, reason }) => withheld.push([tool, reason]) });
  const wide = (name: string) => tool(name, { region: declared, more: { enum: Array(40_000).fill(0) } });
  const plain = { name: 'plain', more: Array(200_000).fill(0) };
  const listed = learn(headers, page([wide('a'), plain, wide('b'), wide('c')], { ttlMs: 1 }));
  assert.equal(JSON.parse(listed.text), { tools: [wide('a'), plain, wide('b')], ttlMs: 1 });
  assert.equal(withheld, [['c', 'the tools of its page that declare headers have more than 100000 values']]);
  const regions = ['a', 'b', 'c'].map((name) => headersFor(headers, call(name)));
  assert.equal(regions, [{ 'mcp-param-region': 'x' }, { 'mcp-param-region': 'x' }, undefined]);
});

test('omitted tools are reported once for each fault, up to a maximum, with at most the beginning of their names', () => {
  const names: string[] = [];
  const headers = new ToolHeaders({ onWithheld: ({ tool }) => names.push(tool) });
  const list = (...tools: readonly JsonObject[]) => void learn(headers, page(tools));
  const long = 'x'.repeat(100_000);
  for (let count = 0; count < 3; count += 1) list(tool(long, BAD), tool('one', BAD));
  list(tool('one', WORSE));
  assert.equal(names, [long.slice(0, 256), 'one', 'one']);
  list(...Array.from({ length: 200 }, (_, at) => tool(`tool-${at}`, BAD)));
  assert.is(names.length, 101);
});

test.run();
