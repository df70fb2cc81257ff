// Calls of tools: how arguments are read, and how results are shown.

import * as assert from 'uvu/assert';
import { main } from '../../../src/cli/main.ts';
import { fixtureHandler } from '../../helpers/backends/function-backend.ts';
import { fetchFor } from '../../helpers/network/replaced-fetch.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';
import { complaint, gatewayFor, printed, serverFor } from './against-gateway.ts';

const test = suite('tool call');
const serve = serverFor(test);
const replaceFetch = fetchFor(test);
const PNG = Buffer.alloc(1_500).toString('base64');
const inputSchema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    ratio: { type: 'number' },
    flag: { type: 'boolean' },
    list: { type: 'array' },
    maybe: { type: ['object', 'null'] },
    either: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    level: { enum: [1, 'high'] },
    point: { allOf: [{ $ref: '#/$defs/point' }] },
  },
  $defs: { point: { anyOf: [{ type: 'object' }, { $ref: '#/$defs/point' }] } },
};
/** The result of the tool `parts`. */
const content = [
  { type: 'text', text: 'two\nlines' },
  { type: 'image', mimeType: 'image/png', data: PNG },
  { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' },
  { type: 'resource', resource: { uri: 'file:///a', text: 'of a file' } },
  { type: 'resource', resource: { uri: 'file:///b', mimeType: 'application/zip', blob: 'AAAA' } },
  { type: 'resource_link', uri: 'file:///c', name: 'c' },
];
/** Arguments of the last call of `show`, as they arrived. */
let arrived = '';
const gateway = gatewayFor(test, {}, async ({ server: { gateway: facade } }) => {
  await facade.register('demo', { handler: fixtureHandler('one') }, { waitMs: 5_000 });
  const tools = ['show', 'parts', 'data', 'fail'].map((name) => ({ name, inputSchema }));
  const handler = ({ method, params }: { method: string; params?: unknown }) => {
    if (method !== 'tools/call') return { tools };
    const { name, arguments: args } = JSON.parse(JSON.stringify(params));
    if (name === 'show') arrived = JSON.stringify(args);
    if (name === 'parts') return { content };
    if (name === 'data') return { content: [], structuredContent: { a: 1 } };
    return { content: [{ type: 'text', text: 'broken\u001b[2J' }], isError: name === 'fail' };
  };
  await facade.register('odd', { handler }, { waitMs: 5_000 });
});

test('suggests the nearest tool', async () => {
  assert.match(await complaint(gateway.run('tool call odd shwo')), /^[^;]*; did you mean "show"\?[^;]*$/);
});

test('prints the text of the result', async () => {
  const line = '{"text":"hello world"}';
  for (const word of ['text=hello world', line])
    assert.is(await printed(gateway.run('tool call demo echo', word)), 'hello world');
  assert.is(await printed(gateway.run('tool call demo name')), 'one');
});

/** Words of a call, and the arguments that they become by the types of the schema. */
const TYPED: readonly (readonly [words: readonly string[], expected: object])[] = [
  [
    ['text=7', 'count=7', 'ratio=7', 'flag=true', 'list=[1, "a"]', 'maybe=null', 'either=1', 'level=1'],
    { text: '7', count: 7, ratio: 7, flag: true, list: [1, 'a'], maybe: null, either: 1, level: 1 },
  ],
  [
    ['text=', 'count=-7', 'ratio=7.5', 'maybe={"a":1}', 'either=one', 'level=high', 'unknown=1'],
    { text: '', count: -7, ratio: 7.5, maybe: { a: 1 }, either: 'one', level: 'high', unknown: '1' },
  ],
  [['point={"x":1}'], { point: { x: 1 } }],
  // Values of another type are sent as they were written: the server refuses them.
  [['text=a=b', 'count=7.5', 'flag=yes', 'list={}'], { text: 'a=b', count: '7.5', flag: 'yes', list: '{}' }],
  [['count=seven', '__proto__=1'], JSON.parse('{"count":"seven","__proto__":"1"}')],
  [['[k]=1'], { '[k]': '1' }],
];

test('sends each argument in the type that the schema of the tool declares', async () => {
  for (const [words, expected] of TYPED) {
    await printed(gateway.run('tool call odd show', ...words));
    assert.equal(JSON.parse(arrived), expected);
  }
});

test('names the near argument of one that the tool does not have, and makes the call', async () => {
  const { code, err } = await gateway.run('tool call odd show', 'txet=7', 'nothing=1');
  assert.is(code, 0);
  assert.match(err, 'show has no argument "txet"; did you mean "text"?');
  assert.not.match(err, 'nothing');
  assert.equal(JSON.parse(arrived), { txet: '7', nothing: '1' });
});

test('sends numbers above 2^53 exactly as they were written', async () => {
  const seen: string[] = [];
  const { fetch } = globalThis;
  replaceFetch((url, init) => {
    if (typeof init?.body === 'string') seen.push(init.body);
    return fetch(String(url), init);
  });
  await gateway.run('tool call odd show count=12345678901234567890 ratio=1.50');
  await gateway.run('tool call odd show', '{"count": 12345678901234567890}');
  assert.equal(seen, [
    '{"name":"show","arguments":{"count":12345678901234567890,"ratio":1.50}}',
    '{"name":"show","arguments":{"count": 12345678901234567890}}',
  ]);
});

test('shows content other than text by its type and size', async () => {
  assert.equal((await printed(gateway.run('tool call odd parts'))).split('\n'), [
    ...['two', 'lines', '[image image/png, 1500 bytes]', '[audio audio/wav, 3 bytes]', 'of a file'],
    ...['[application/zip, 3 bytes: file:///b]', '[link c: file:///c]'],
  ]);
  assert.equal(JSON.parse(await printed(gateway.run('tool call odd data'))), { a: 1 });
  assert.equal(JSON.parse(await printed(gateway.run('tool call odd parts --json'))), { content });
});

test('ends with exit code 1 when the tool reports an error', async () => {
  const failure = /^stagedoor: fail of odd reports an error\nbroken/;
  assert.match(await complaint(gateway.run('tool call odd fail')), failure);
  const asJson = await gateway.run('tool call odd fail --json');
  assert.equal([asJson.code, JSON.parse(asJson.out).isError, asJson.err], [1, true, '']);
});

test('shows progress and log messages while it waits', async () => {
  const terminal = recordingTerminal({ env: { STAGEDOOR_URL: gateway.url }, columns: 100 });
  assert.is(await main(['tool', 'call', 'demo', 'progress', 'steps=2'], terminal), 0);
  await main(['tool', 'call', 'demo', 'log', 'text=a word'], terminal);
  assert.equal(terminal.printed, ['did 2 steps', 'logged']);
  const shown = terminal.progress.filter((text) => /^(progress|log): /.test(text));
  assert.equal(shown, ['progress: 1 of 2 step 1', 'progress: 2 of 2 step 2', 'log: a word']);
});

test('fails with one line when the result is not JSON', async () => {
  const url = await serve((_, response) => {
    response.setHeader('content-type', 'text/event-stream').end('event: result\ndata: {\n\n');
  });
  const calling = gateway.run('tool call demo name {} --url', url);
  assert.is(await complaint(calling), `stagedoor: the result from ${url} is not JSON`);
});

test('refuses invalid arguments, tools and templates with one line', async () => {
  const cases: [string, number, RegExp][] = [
    ['odd show {"a":', 2, /: the arguments must be one JSON object: /],
    ['odd show [1]', 2, /: the arguments must be one JSON object such as /],
    ['odd show a=1 b', 2, /key=value, not "b"$/],
    ['odd show a=1 a=2', 2, /: argument a can be given only once$/],
    ['demo nothing a=1', 1, /\(TOOL_NOT_FOUND\)$/],
    ['nothing show', 1, /\(TEMPLATE_NOT_FOUND\)$/],
    ['dmeo name', 1, /_NOT_FOUND\); did you mean "demo"\?$/],
    ['demo', 2, /: missing required argument <tool>; /],
  ];
  for (const [words, expected, line] of cases) {
    const said = await complaint(gateway.run(`tool call ${words}`), expected);
    assert.match(said, line);
    assert.not.match(said, '\n');
  }
});

test.run();
