// Arguments arrive at the backend as the caller wrote them, and results at the caller as the backend wrote them: each number
// and each string, from every kind of client to every kind of backend. Source: ADR 43.

import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { FAILS, ODD_JSON, rawEchoListener } from '../../fixtures/raw-echo-server.ts';
import { MCP_TYPES, modern, openSession } from '../../helpers/clients/mcp-messages.ts';
import { type Answer, appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { startRawServer } from '../../transports/raw-server.ts';

const test = suite('exact JSON');
const program = fileURLToPath(new URL('../../fixtures/raw-echo-server.ts', import.meta.url));
const ERAS = ['legacy', 'modern'] as const;
const servers = ERAS.map((era) => ({ era, started: startRawServer(rawEchoListener(era)) }));
const app = appFor(test, () => startApp({ gateway: { aggregate: { mode: 'search' } } }));
const TEMPLATES = ERAS.flatMap((era) => [`stdio-${era}`, `http-${era}`]);

test.before(async () => {
  for (const { era, started } of servers) {
    const { url } = await started;
    await app.gateway.register(`http-${era}`, { endpoint: url }, { waitMs: 30_000 });
    const command = { command: process.execPath, args: [program, `--era=${era}`] };
    await app.gateway.register(`stdio-${era}`, command, { waitMs: 30_000 });
  }
});
test.after(async () => {
  for (const { started } of servers) await (await started).close();
});

/** Posts the text of a message. */
const post = (path: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  app.ask('POST', path, { body, headers: { ...MCP_TYPES, ...headers } });

/** Calls a tool with the text of its arguments. */
type Way = (template: string, tool: string, args: string) => Promise<Answer>;

const rest: Way = (template, name, args) =>
  post(`/mcp/${template}/tools/call`, `{"name":"${name}","arguments":${args}}`);

const byServer: Way = (template, name, args) => {
  const server = app.gateway.servers().find(({ definition }) => definition.template === template);
  const id = server?.definition.serverId;
  return post('/tools/call', `{"server_id":"${id}","tool_name":"${name}","arguments":${args}}`);
};

/** Where clients call the tools of a template, by which names, and with which arguments. */
type Place = (
  template: string,
  tool: string,
) => readonly [path: string, name: string, argsFor?: (args: string) => string];
const own: Place = (template, tool) => [`/mcp/${template}`, tool];
const ofAll: Place = (template, tool) => ['/mcp', `${template}__${tool}`];
const found: Place = (template, tool) => [
  '/mcp',
  'call_tool',
  (args) => `{ "arguments" : ${args} ,"name":"${template}__${tool}"}`,
];

const sessions = new Map<string, Promise<Readonly<Record<string, string>>>>();
const mcpAt =
  (place: Place, era: 'legacy' | 'modern'): Way =>
  async (template, tool, args) => {
    const [path, name, argsFor = (same: string) => same] = place(template, tool);
    const session = sessions.get(path) ?? openSession(app, path);
    sessions.set(path, session);
    const { body, headers } = modern('tools/call', { name });
    const own = era === 'modern' ? JSON.stringify(body.params._meta).slice(1, -1) : '"y":1';
    const text = `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"_meta":{"x":12345678901234567890,${own}},"name":"${name}","arguments":${argsFor(args)}}}`;
    return post(path, text, era === 'modern' ? headers : await session);
  };

const WAYS: readonly { readonly what: string; readonly way: Way; readonly isMcp: boolean }[] = [
  { what: 'a REST call', way: rest, isMcp: false },
  { what: 'a REST call by server id', way: byServer, isMcp: false },
  { what: 'a legacy client', way: mcpAt(own, 'legacy'), isMcp: true },
  { what: 'a modern client', way: mcpAt(own, 'modern'), isMcp: true },
  { what: 'a legacy client of all templates', way: mcpAt(ofAll, 'legacy'), isMcp: true },
  { what: 'a modern client of all templates', way: mcpAt(ofAll, 'modern'), isMcp: true },
  { what: 'a legacy client that calls a found tool', way: mcpAt(found, 'legacy'), isMcp: true },
  { what: 'a modern client that calls a found tool', way: mcpAt(found, 'modern'), isMcp: true },
];

/** JSON texts that differ after they are parsed and serialized. */
const NUMBERS = fc.oneof(
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom('1e400', '-0', '1.0', '-0.0', '1E5', '0.10', '9223372036854775807', '1e-400'),
);
const STRINGS = fc.oneof(
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\u0000"', '"\\ud800"', '"x\\udc00y"'), // no characters, but programs write them
  fc.constantFrom('"\u2028"', '"a\u2029b"'), // separators of lines
  fc.constantFrom('"\\u00e9"', '"\\/"', '"\\ud83d\\ude00"', '"\\\\\\""', '"}{\\"]["'),
);
const JSON_TEXTS = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    NUMBERS,
    STRINGS,
    fc.constantFrom('true', 'null'),
    tie('list'),
    tie('object'),
  ),
  list: fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(' ,')}]`),
  object: fc
    .array(fc.tuple(fc.oneof(STRINGS, fc.constant('"same"')), tie('value')), { maxLength: 4 })
    .map((fields) => `{${fields.map(([key, value]) => `${key}: ${value}`).join()}}`),
})).object;

/** Plain arguments, arguments of which one detail would be serialized otherwise, and a body for each way of reading. */
const PLAIN = [
  '{}',
  '{"message":"hello","count":1,"list":[1,2.5,-3],"yes":true,"none":null}',
  '{"2":0,"1":0}',
  '{"same":1,"same":2}',
  '{"__proto__":{"a":1}}',
  '{"a":1.0}',
  '{"a":1e2}',
  '{"a":[-0]}',
  '{"a":"\\u0041\\/"}',
  '{ "a" : [ 1 , 2 ] }',
  '{"a":"é€😀","b":""}',
  `{"embedding":[${Array(150_000).fill('0.5')}]}`,
  `{"rows":[${Array(60_000).fill('{"a":{}}')}]}`,
  ...[300, 500, 4_000, 16_200, 16_384, 70_000].flatMap((length) => [
    `{"a":"${'x'.repeat(length)}","n":[9007199254740993,{"b":"\\""}]}`,
    `{"a":"é${'x'.repeat(length)}","n":[9007199254740993,{"b":"\\""}]}`,
  ]),
];

/** The message that arrived at the backend. */
function arrived(text: string): string {
  const [, data = text] = /^data: ([^\n]+)/m.exec(text) ?? [];
  const answered = JSON.parse(data);
  return String(Object(answered.result ?? answered).content?.[0]?.text);
}

for (const { what, way, isMcp } of WAYS) {
  test(`passes generated arguments of ${what} unchanged`, async () => {
    await fc.assert(
      fc.asyncProperty(JSON_TEXTS, fc.constantFrom(...TEMPLATES), async (args, template) => {
        const { text: answer } = await way(template, 'raw', args);
        const message = arrived(answer);
        // Programs may read these two as the ends of lines: over stdio they are escaped.
        const escaped = args.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
        const sent = template.startsWith('stdio') ? escaped : args;
        assert.ok(message.includes(`"arguments":${sent}`), `${args}\n${answer}`);
        if (isMcp) {
          assert.ok(message.includes('"x":12345678901234567890'), message);
          assert.match(answer, /"id":9007199254740993[,}]/);
        }
        assert.ok(answer.includes(`"structuredContent":${ODD_JSON}`), answer);
      }),
      { numRuns: 40, endOnFailure: true },
    );
  });

  test(`passes plain arguments of ${what}, small and large, unchanged`, async () => {
    for (const args of PLAIN) {
      const message = arrived((await way('stdio-legacy', 'raw', args)).text);
      assert.ok(message.includes(`"arguments":${args}`), `${args.slice(0, 200)}\n${message.slice(0, 400)}`);
    }
  });

  test(`passes the numbers in a backend error to ${what} unchanged`, async () => {
    for (const template of TEMPLATES) {
      const { text } = await way(template, FAILS, '{}');
      assert.match(text, /"data":\{"big":\[1234567890123456789,-0,100\],"twice":"é"\}/, text);
    }
  });
}

test('arguments that are no object pass at the MCP endpoint, and are refused with what is expected over REST', async () => {
  const session = await openSession(app, '/mcp/stdio-legacy');
  const expected = { loc: ['body', 'arguments'], msg: 'Input should be a valid dictionary (a JSON object)' };
  for (const args of ['[]', '[ 1.0 ]', '"text"', '5', 'true']) {
    for (const way of [rest, byServer]) {
      const { status, body } = await way('stdio-legacy', 'raw', args);
      assert.equal([status, body.detail], [422, [{ ...expected, type: 'dict_type' }]]);
    }
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":${args}}}`;
    assert.match(arrived((await post('/mcp/stdio-legacy', call, session)).text), `"arguments":${args}}`);
  }
});

test('the params of a call without a progress token arrive at a program byte for byte', async () => {
  const params = (name: string) => `{ "name" : "${name}","arguments":{ "a" : [1.0,"\\u00e9"] } }`;
  const call = (name: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params(name)}}`;
  const [one, all] = [await openSession(app, '/mcp/stdio-legacy'), await openSession(app, '/mcp')];
  const doors = {
    REST: post('/mcp/stdio-legacy/tools/call', params('raw')),
    'a legacy client': post('/mcp/stdio-legacy', call('raw'), one),
    'a legacy client of all templates': post('/mcp', call('stdio-legacy__raw'), all),
  };
  for (const [door, answer] of Object.entries(doors)) {
    const message = arrived((await answer).text);
    assert.match(message, '"arguments":{ "a" : [1.0,"\\u00e9"] }', door);
    assert.not.match(message, /_meta|progressToken/, door);
  }
});

test('takes null for an absent field, where the field is optional', async () => {
  const sent = async (answer: Promise<Answer>) => arrived((await answer).text);
  const [session, { headers, body }] = [
    await openSession(app, '/mcp/stdio-legacy'),
    modern('tools/call', {}),
  ];
  const meta = JSON.stringify(body.params._meta).slice(1, -1);
  const servers = app.gateway.servers().map(({ definition }) => definition);
  for (const template of TEMPLATES) {
    const id = servers.find((server) => server.template === template)?.serverId;
    const call = '{"name":"raw","arguments":null,"_meta":null}';
    assert.not.match(await sent(post(`/mcp/${template}/tools/call`, call)), /null/);
    const byId = `{"server_id":"${id}","tool_name":"raw","arguments":null}`;
    assert.match(await sent(post('/tools/call', byId)), '"arguments":{}');
    const params = `{"name":"raw","task":null,"cursor":null,"_meta":{${meta},"progressToken":null}}`;
    const request = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
    assert.not.match(await sent(post(`/mcp/${template}`, request, headers)), /"(?:task|cursor)"/);
  }
  const withNull = async (method: string, rest: string) => {
    const text = `{"jsonrpc":"2.0","method":"${method}","params":null${rest}}`;
    return (await post('/mcp/stdio-legacy', text, session)).status;
  };
  assert.is(await withNull('tools/list', ',"id":1'), 200);
  assert.is(await withNull('ping', ',"id":2'), 200);
  assert.is(await withNull('notifications/initialized', ',"id":null'), 202);
});

test('refuses equal ids above 2^53 in one batch, and tells unequal ones apart', async () => {
  const path = '/mcp/stdio-legacy';
  const session = await openSession(app, path, { version: '2025-03-26' });
  const batch = (...ids: string[]) =>
    `[${ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`)}]`;
  const good = await post(path, batch('9007199254740992', '9007199254740993'), session);
  for (const id of ['9007199254740992', '9007199254740993'])
    assert.match(good.text, new RegExp(`"id":${id}[,}]`));
  const bad = await post(path, batch('9007199254740993', '9007199254740993'), session);
  assert.is(bad.status, 400);
});

test('keeps the id of a subscription exact above 2^53', async () => {
  const { body, headers } = modern('subscriptions/listen', { notifications: {} });
  const message = JSON.stringify(body).replace('"id":1', '"id":9007199254740993');
  const { text } = await post('/mcp/stdio-modern', message, headers);
  assert.match(text, '"id":9007199254740993,"result":');
  assert.is(text.match(/subscriptionId":9007199254740993[,}]/g)?.length, 2);
});

test.run();
