// What the tools of a modern HTTP backend want repeated in headers, and tools that ask for it in a way that nobody may follow.
// How calls come to wear them is http-tool-headers.spec.ts.

import { defer, EMPTY } from 'rxjs';
import * as assert from 'uvu/assert';
import { type JsonObject, JsonText } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import {
  areTooLarge,
  MOST_HEADER_BYTES,
  MOST_REPORTED,
  MOST_TOOLS,
  NAME_UNITS,
  OmittedTools,
  ToolHeaders,
  wouldWearMore,
} from '../../../src/transports/http/tool-headers.ts';
import type { OmittedTool } from '../../../src/transports/transport.ts';
import { suite } from '../../helpers/suite.ts';

const declared = { type: 'string', 'x-mcp-header': 'Region' };

function tool(name: string, properties: JsonObject = { region: declared }): JsonObject {
  return { name, inputSchema: { type: 'object', properties }, title: name.toUpperCase() };
}

function page(tools: readonly unknown[], more: JsonObject = {}): JsonText {
  return JsonText.ofBytes(Buffer.from(JSON.stringify({ tools, ...more })));
}

function call(name: string, region: string | null = 'x'): JsonObject {
  return { name, arguments: { region } };
}

const PEER: Peer = {
  era: 'modern',
  protocolVersion: '2026-07-28',
  serverName: 'x',
  serverVersion: '1',
  capabilities: {},
  greeting: {},
};

function learn(headers: ToolHeaders, list: JsonText): JsonText {
  return headers.checkTools({ method: 'tools/list' }, PEER, list);
}

function headersFor(headers: ToolHeaders, params: JsonObject) {
  return headers.for({ method: 'tools/call', params }, PEER);
}

const test = suite('tool headers');

test('are known for a tool that was listed', () => {
  const headers = new ToolHeaders();
  assert.is(headersFor(headers, call('one')), undefined);
  learn(headers, page([tool('one'), tool('plain', {})]));
  assert.equal(headersFor(headers, call('one', 'grüße')), { 'mcp-param-region': '=?base64?Z3LDvMOfZQ==?=' });
  assert.is(headersFor(headers, call('one', null)), undefined);
  assert.is(headersFor(headers, call('plain')), undefined);
  assert.is(headersFor(headers, { name: 7 }), undefined);
});

test('are those of the latest listing, on whatever page it was', () => {
  const headers = new ToolHeaders();
  learn(headers, page([tool('one'), tool('two')]));
  learn(headers, page([tool('two', {})], { nextCursor: 'more' }));
  assert.equal(
    [headersFor(headers, call('one')), headersFor(headers, call('two'))],
    [{ 'mcp-param-region': 'x' }, undefined],
  );
});

test('take out of a list only the tools that nobody may call over HTTP', () => {
  const bad = [
    tool('object', { a: { type: 'object', 'x-mcp-header': 'A' } }),
    tool('number', { a: { type: 'number', 'x-mcp-header': 'A' } }),
    tool('twice', { a: declared, b: { type: 'string', 'x-mcp-header': 'REGION' } }),
    tool('space', { a: { type: 'string', 'x-mcp-header': 'A B' } }),
  ];
  const headers = new ToolHeaders();
  const list = page([tool('one'), ...bad, tool('two', {})], { nextCursor: 'more', ttlMs: 5 });
  assert.equal(learn(headers, list).value, {
    tools: [tool('one'), tool('two', {})],
    nextCursor: 'more',
    ttlMs: 5,
  });
  for (const { name } of bad)
    assert.is(headersFor(headers, { name, arguments: { a: 'x', b: 'y' } }), undefined);
});

test('say of the tools that they take out why, and say so again after a list had them', () => {
  const omitted = new OmittedTools();
  const news: string[] = [];
  omitted.omitted$.subscribe(({ tool: name, reason }) => news.push(`${name}: ${reason}`));
  const headers = new ToolHeaders(omitted);
  const bad = page([tool('one'), tool('bad', { a: { type: 'object', 'x-mcp-header': 'A' } })]);
  const said = 'bad: a header is asked for "a", which is no string, integer or boolean';
  learn(headers, bad);
  learn(headers, bad);
  assert.equal(news, [said]);
  learn(headers, page([tool('bad')]));
  learn(headers, bad);
  assert.equal(news, [said, said]);
});

test('leave a list as it came when there is nothing to take out, or nothing to read', () => {
  const texts = ['{"tools":[{"name":"a"},7,null]}', '{"tools":7}', '[]', '{"tools":[{]}'];
  for (const text of texts) {
    const list = JsonText.ofBytes(Buffer.from(text));
    assert.is(learn(new ToolHeaders(), list), list, text);
    assert.is(Buffer.from(list.bytes).toString(), text);
  }
});

test('are forgotten of the oldest tools when there are too many', () => {
  const headers = new ToolHeaders();
  for (let at = 0; at <= MOST_TOOLS; at += 1000) {
    learn(headers, page(Array.from({ length: 1000 }, (_, index) => tool(`tool-${at + index}`))));
  }
  assert.is(headersFor(headers, call('tool-0')), undefined);
  assert.equal(headersFor(headers, call(`tool-${MOST_TOOLS}`)), { 'mcp-param-region': 'x' });
});

test('are for calls of tools in the modern era, whose caller gave none', () => {
  const headers = new ToolHeaders();
  learn(headers, page([tool('one')]));
  const request = { method: 'tools/call', params: call('one') };
  const legacy = { ...PEER, era: 'legacy' } as const;
  const others = [
    [{ ...request, headers: {} }, PEER],
    [{ ...request, method: 'prompts/get' }, PEER],
    [request, legacy],
  ] as const;
  for (const [other, peer] of others) {
    assert.is(headers.for(other, peer), undefined);
    assert.is(headers.areOursFor(other, peer), false);
  }
  assert.is(headers.areOursFor(request, PEER), true);
});

test('are impossible for an argument without an exact text, of a tool that wants it', () => {
  const headers = new ToolHeaders();
  learn(headers, page([tool('one', { region: { type: 'integer', 'x-mcp-header': 'Region' } })]));
  const isImpossible = (name: string, region: JsonObject[string]) =>
    headers.areImpossibleFor({ method: 'tools/call', params: { name, arguments: { region } } });
  assert.is(isImpossible('one', 2 ** 60), true);
  assert.is(isImpossible('one', 7), false);
  assert.is(isImpossible('two', 2 ** 60), false);
  assert.is(headers.areImpossibleFor({ method: 'tools/call' }), false);
  let listings = 0;
  const toolListing$ = defer(() => {
    listings += 1;
    return EMPTY;
  });
  const request = { method: 'tools/call', params: { name: 'one', arguments: { region: 2 ** 60 } } };
  const verdicts: boolean[] = [];
  wouldWearMore({ toolHeaders: headers, toolListing$ }, { request, peer: PEER, worn: undefined }).subscribe(
    (isMore) => verdicts.push(isMore),
  );
  assert.equal([verdicts, listings], [[false], 0], 'tools are not listed anew for it');
});

test('are too large above a number of bytes, names and all', () => {
  const fitting = { 'mcp-param-a': 'x'.repeat(MOST_HEADER_BYTES - 'mcp-param-a: \r\n'.length) };
  assert.is(areTooLarge(fitting), false);
  assert.is(areTooLarge({ ...fitting, 'mcp-param-b': '' }), true);
});

test('take no tool out of a list that asks for none, however deep its schema is', () => {
  let deep: JsonObject = { type: 'string' };
  for (let level = 0; level < 33; level += 1) deep = { type: 'object', properties: { [`k${level}`]: deep } };
  const list = page([{ name: 'deep', inputSchema: deep }]);
  assert.is(learn(new ToolHeaders(), list), list);
});

test('are not learned of what is no list, or of another era', () => {
  const headers = new ToolHeaders();
  const list = page([tool('one'), tool('bad', { a: { type: 'object', 'x-mcp-header': 'A' } })]);
  assert.is(headers.checkTools({ method: 'tools/call' }, PEER, list), list);
  assert.is(headers.checkTools({ method: 'tools/list' }, { ...PEER, era: 'legacy' }, list), list);
  assert.is(headersFor(headers, call('one')), undefined);
});

// Tools that lists come without.

function heard(told?: Map<string, string>) {
  const tools = new OmittedTools(told);
  const news: OmittedTool[] = [];
  tools.omitted$.subscribe((one) => news.push(one));
  return { tools, news, names: () => news.map(({ tool }) => tool) };
}

test('omitted tools are told once, however often a list comes without them', () => {
  const { tools, news } = heard();
  for (let list = 0; list < 3; list += 1) {
    tools.omit('a', 'it is bad');
    tools.omit('b', 'it is bad');
  }
  assert.equal(news, [
    { tool: 'a', reason: 'it is bad' },
    { tool: 'b', reason: 'it is bad' },
  ]);
});

test('omitted tools are told again for another reason, and after they were right', () => {
  const { tools, news } = heard();
  tools.allow('a');
  for (const reason of ['bad', 'worse', 'bad']) tools.omit('a', reason);
  tools.allow('a');
  tools.omit('a', 'bad');
  assert.equal(
    news.map(({ reason }) => reason),
    ['bad', 'worse', 'bad', 'bad'],
  );
});

test('omitted tools are not told again by the next opening of the same instance', () => {
  const told = new Map<string, string>();
  heard(told).tools.omit('a', 'bad');
  const { tools, names } = heard(told);
  tools.omit('a', 'bad');
  tools.omit('b', 'bad');
  assert.equal(names(), ['b']);
});

test('omitted tools are no more than there is room for, until one of them is right', () => {
  const told = new Map<string, string>();
  const { tools, names } = heard(told);
  for (let list = 0; list < 3; list += 1) {
    for (let at = 0; at < 2 * MOST_REPORTED; at += 1) tools.omit(`tool-${at}`, 'bad');
  }
  assert.equal([names().length, told.size], [MOST_REPORTED, MOST_REPORTED]);
  tools.allow('tool-0');
  tools.omit('late', 'bad');
  assert.equal([names().at(-1), told.size], ['late', MOST_REPORTED]);
});

test('omitted tools are told by the beginning of a long name, and are not taken for one another by it', () => {
  const told = new Map<string, string>();
  const { tools, names } = heard(told);
  const [one, two] = ['1', '2'].map((end) => 'x'.repeat(100_000) + end);
  for (let list = 0; list < 2; list += 1) {
    tools.omit(one ?? '', 'bad');
    tools.omit(two ?? '', 'worse');
  }
  assert.equal(names(), Array(2).fill('x'.repeat(NAME_UNITS)));
  assert.ok([...told.keys()].every((key) => key.length <= NAME_UNITS));
});

test.run();
