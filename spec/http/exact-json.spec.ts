// What a caller writes arrives at the backend as it was written, and what the backend answers arrives as it was answered: each
// number and each string, by every way in and every way out. Source: ADR 43.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { FAILS, ODD_JSON, rawEchoListener } from '../fixtures/raw-echo-server.ts';
import { type Answer, type AppFixture, appFor, startApp } from '../helpers/http-app.ts';
import { MCP_TYPES, openSession } from '../helpers/http-mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('exact JSON');
const program = fileURLToPath(new URL('../fixtures/raw-echo-server.ts', import.meta.url));
const ERAS = ['legacy', 'modern'] as const;
const servers = ERAS.map((era) => createServer(rawEchoListener(era)));
const app = appFor(test, () => startApp());
const TEMPLATES = ERAS.flatMap((era) => [`stdio-${era}`, `http-${era}`]);

test.before(async () => {
  const { gateway } = app;
  for (const [index, era] of ERAS.entries()) {
    const server = servers[index]?.listen(0, '127.0.0.1');
    if (server === undefined) throw new Error('no server');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await gateway.register(`http-${era}`, { endpoint: `http://127.0.0.1:${port}/mcp` }, { waitMs: 30_000 });
    const command = { command: process.execPath, args: [program, `--era=${era}`] };
    await gateway.register(`stdio-${era}`, command, { waitMs: 30_000 });
  }
});
test.after(async () => {
  await app.close();
  for (const server of servers) server.close();
});

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Posts the text of a message to the MCP endpoint; gives the text of what is answered. */
async function post(
  app: AppFixture,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return app.ask('POST', path, { body, headers: { ...MCP_TYPES, ...headers } });
}

/** Calls a tool with the text of its arguments, and gives the text of the answer. */
type Way = (app: AppFixture, template: string, tool: string, args: string) => Promise<string>;

const rest: Way = async (app, template, name, args) =>
  (
    await app.ask('POST', `/mcp/${template}/tools/call`, {
      body: `{"name":"${name}","arguments":${args}}`,
      headers: MCP_TYPES,
    })
  ).text;

const byServer: Way = async (app, template, name, args) => {
  const [id = ''] = app.gateway
    .servers()
    .filter((server) => server.definition.template === template)
    .map((server) => server.definition.serverId);
  const body = `{"server_id":"${id}","tool_name":"${name}","arguments":${args}}`;
  return (await app.ask('POST', '/tools/call', { body, headers: MCP_TYPES })).text;
};

const sessions = new Map<string, Promise<Readonly<Record<string, string>>>>();
const legacyAt =
  (pathOf: (template: string) => string, nameOf: (template: string, tool: string) => string): Way =>
  async (app, template, tool, args) => {
    const path = pathOf(template);
    const session = sessions.get(path) ?? openSession(app, path);
    sessions.set(path, session);
    const body = `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"${nameOf(template, tool)}","arguments":${args},"_meta":{"x":12345678901234567890}}}`;
    return (await post(app, path, body, await session)).text;
  };

const modernAt =
  (pathOf: (template: string) => string, nameOf: (template: string, tool: string) => string): Way =>
  async (app, template, tool, args) => {
    const name = nameOf(template, tool);
    const meta = JSON.stringify(MODERN).replace('{', '{"x":12345678901234567890,');
    const body = `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"_meta":${meta},"name":"${name}","arguments":${args}}}`;
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name };
    return (await post(app, pathOf(template), body, headers)).text;
  };

const own = (template: string) => `/mcp/${template}`;
const same = (_template: string, tool: string) => tool;
const all = () => '/mcp';
const joined = (template: string, tool: string) => `${template}__${tool}`;
const WAYS: Readonly<Record<string, Way>> = {
  rest,
  'by server': byServer,
  'a legacy client': legacyAt(own, same),
  'a modern client': modernAt(own, same),
  'a legacy client of all templates': legacyAt(all, joined),
  'a modern client of all templates': modernAt(all, joined),
};

/** JSON texts that a parser would not write again as they are. */
const NUMBERS = fc.oneof(
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom('1e400', '-0', '1.0', '-0.0', '1E5', '0.10', '9223372036854775807', '1e-400'),
);
const STRINGS = fc.oneof(
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
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

/** Plain ones, and those in which only one thing would be written otherwise; bodies of every size that is read in its own way. */
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
  ...[300, 500, 4_000, 16_200, 16_384, 70_000].flatMap((length) => [
    `{"a":"${'x'.repeat(length)}","n":[9007199254740993,{"b":"\\""}]}`,
    `{"a":"é${'x'.repeat(length)}","n":[9007199254740993,{"b":"\\""}]}`,
  ]),
];

/** The message that arrived at the backend. */
function arrived(text: string): string {
  const [, data = text] = /^data: ([^\n]*)/m.exec(text) ?? [];
  const answered = JSON.parse(data);
  return String(Object(answered.result ?? answered).content?.[0]?.text);
}

for (const [what, way] of Object.entries(WAYS)) {
  test(`passes arguments of ${what} as they are`, async () => {
    await fc.assert(
      fc.asyncProperty(JSON_TEXTS, fc.constantFrom(...TEMPLATES), async (args, template) => {
        const answer = await way(app, template, 'raw', args);
        const message = arrived(answer);
        assert.ok(message.includes(`"arguments":${args}`), `${args}\n${answer}`);
        if (what.includes('client')) {
          assert.ok(message.includes('"x":12345678901234567890'), message);
          assert.match(answer, /"id":9007199254740993[,}]/);
        }
        assert.ok(answer.includes(`"structuredContent":${ODD_JSON}`), answer);
      }),
      { numRuns: 40, endOnFailure: true },
    );
  });

  test(`passes plain arguments of ${what}, small and large, as they are`, async () => {
    for (const args of PLAIN) {
      const message = arrived(await way(app, 'stdio-legacy', 'raw', args));
      assert.ok(message.includes(`"arguments":${args}`), `${args.slice(0, 200)}\n${message.slice(0, 400)}`);
    }
  });

  test(`keeps the numbers of an error for ${what}`, async () => {
    for (const template of TEMPLATES) {
      const answer = await way(app, template, FAILS, '{}');
      assert.match(answer, /"data":\{"big":\[1234567890123456789,-0,100\],"twice":"é"\}/, answer);
    }
  });
}

test('refuses ids of two requests in a batch that are the same beyond 2^53, and serves those that differ there', async () => {
  const session = await openSession(app, own('stdio-legacy'), { version: '2025-03-26' });
  const batch = (...ids: string[]) =>
    `[${ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`)}]`;
  const good = await post(app, own('stdio-legacy'), batch('9007199254740992', '9007199254740993'), session);
  for (const id of ['9007199254740992', '9007199254740993'])
    assert.match(good.text, new RegExp(`"id":${id}[,}]`));
  const bad = await post(app, own('stdio-legacy'), batch('9007199254740993', '9007199254740993'), session);
  assert.is(bad.status, 400);
});

test('ends a subscription with its id, however large that is', async () => {
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' };
  const params = JSON.stringify({ notifications: {}, _meta: MODERN });
  const body = `{"jsonrpc":"2.0","id":9007199254740993,"method":"subscriptions/listen","params":${params}}`;
  const { text } = await post(app, own('stdio-modern'), body, headers);
  assert.match(text, '"id":9007199254740993,"result":');
  assert.is(text.match(/subscriptionId":9007199254740993[,}]/g)?.length, 2);
});

test.run();
