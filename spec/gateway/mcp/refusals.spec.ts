// What callers read when an HTTP server refuses a call: its status and the beginning of its text, at each door.

import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { type Answer, type Answers, refused, result, serving } from '../../transports/scripted-server.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('refusals of HTTP servers');
let app: AppFixture;
let servers: RawServer[];
let onCall: Answer;
let calls: number;
test.before.each(async () => {
  servers = [];
  calls = 0;
  app = await startApp();
});
test.after.each(async () => {
  await app.gateway.close({ graceMs: 0 });
  await app.close();
  for (const server of servers) await server.close();
});

const SECRETS = {
  'X-Pin': '4711',
  Authorization: 'Bearer k3y-of-the-gateway',
  Cookie: 'sid=cookie-of-the-gateway',
  'X-Login': `Basic ${Buffer.from('user:pa55word-x').toString('base64')}`,
};
const TOOLS = { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] };
const CALL = { name: 'echo', arguments: {} };

function text(status: number, body: string | Buffer, headers: object = {}): Answer {
  return (response) => response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(body);
}

async function serve(answers: Answers = {}, id = 'a'): Promise<void> {
  const onToolsCall: Answer = (response, asked) => {
    calls += 1;
    return onCall(response, asked);
  };
  const server = await startRawServer(
    serving({
      initialize: result({ protocolVersion: '2025-11-25', capabilities: { tools: {} } }),
      ping: result({}),
      'tools/list': result(TOOLS),
      'tools/call': onToolsCall,
      ...answers,
    }),
  );
  servers.push(server);
  await app.gateway.register(
    't',
    { id, endpoint: `${server.url}?token=query-of-the-gateway`, headers: SECRETS },
    { waitMs: 20_000 },
  );
}

/** The message that each door gives, with the status that its data names and its Retry-After. */
async function atEachDoor(): Promise<Record<string, string>> {
  const { gateway } = app;
  const session = await openSession(gateway, 't');
  const aggregate = await openSession(gateway, undefined);
  const message = (name: string) => ({ method: 'tools/call', params: { ...CALL, name } });
  const posts = {
    'legacy, one template': { template: 't', message: message('echo'), headers: session },
    'modern, one template': { template: 't', ...modernRequest('tools/call', CALL) },
    'legacy, all templates': { template: undefined, message: message('t__echo'), headers: aggregate },
    'modern, all templates': {
      template: undefined,
      ...modernRequest('tools/call', { ...CALL, name: 't__echo' }),
    },
  };
  const found: Record<string, string> = {};
  for (const [door, post] of Object.entries(posts)) {
    const { answer } = await postTo(gateway, post);
    const { message = '', data } = Object(answer.error);
    const { status, retry_after_seconds: wait = '' } = Object(data);
    found[door] = `${status} ${message}${wait}`;
  }
  const rest = await app.ask('POST', '/mcp/t/tools/call', { body: CALL });
  found.REST = `${rest.body.backend_status} ${rest.body.detail}${rest.headers.get('retry-after') ?? ''}`;
  const flat = { tool_name: 'echo', server_id: 'a', arguments: {} };
  const b = await app.ask('POST', '/tools/call', { body: flat });
  found['REST, second surface'] =
    `${b.body.backend_status} ${b.body.detail}${b.headers.get('retry-after') ?? ''}`;
  return found;
}

const REFUSED = "(the gateway's credentials for the server were refused)";

const ROWS: readonly [name: string, onCall: Answer, message: string][] = [
  ['a text', text(422, 'm must be a date'), '422 The server answered 422: m must be a date.'],
  [
    'JSON, and a credential that is refused',
    text(401, '{"error":"invalid_token"}', { 'content-type': 'application/json' }),
    `401 The server answered 401 ${REFUSED}: {"error":"invalid_token"}.`,
  ],
  ['nothing', text(403, ''), `403 The server answered 403 ${REFUSED}.`],
  [
    'a page',
    text(404, '<!doctype html><style>p { x: y }</style><h1>Not\n found</h1><p>here', {
      'content-type': 'text/html',
    }),
    '404 The server answered 404: Not found here.',
  ],
  [
    'control characters',
    text(400, 'a\u0000b\u001b[31m\r\nc\u202e d\t'),
    '400 The server answered 400: a b [31m c d.',
  ],
  ['Retry-After', text(429, 'slow down.', { 'retry-after': '7' }), '429 The server answered 429: slow down.'],
  [
    'an error of a proxy',
    text(502, 'upstream is away'),
    '502 The backend is unavailable: answered 502: upstream is away.',
  ],
  [
    'a text instead of the answer',
    text(200, `the quota of k3y-of-the-gateway is used\n up${'!'.repeat(400)}`),
    `undefined The backend is unavailable: answered 200 with something other than the JSON-RPC answer: the quota of *** is used up${'!'.repeat(300 - 'the quota of *** is used up'.length)}.`,
  ],
  [
    'JSON instead of JSON-RPC',
    text(200, '{"error":"quota"}', { 'content-type': 'application/json' }),
    'undefined The backend is unavailable: answered 200 with something other than the JSON-RPC answer: {"error":"quota"}.',
  ],
  [
    'a compressed body that ends early',
    text(200, gzipSync('{"jsonrpc":"2.0","result":{}}').subarray(0, 20), { 'content-encoding': 'gzip' }),
    'undefined The backend is unavailable: answered 200 with a body, but its encoding (gzip) ended early.',
  ],
  [
    'a picture',
    text(415, Buffer.from([0x89, 0x50]), { 'content-type': 'image/png' }),
    '415 The server answered 415.',
  ],
  [
    'more than 300 characters',
    text(413, `${'x'.repeat(299)}\u{1f600}yz`),
    `413 The server answered 413: ${'x'.repeat(299)}.`,
  ],
  [
    'the secrets of the gateway',
    text(
      400,
      'k3y-of-the-gateway, cookie-of-the-gateway, pa55word-x, query-of-the-gateway, Bearer k3y-of-the-gateway',
    ),
    '400 The server answered 400: ***, ***, ***, ***, ***.',
  ],
  [
    'a secret that the cut would divide',
    text(400, `${'x'.repeat(295)}k3y-of-the-gateway`),
    `400 The server answered 400: ${'x'.repeat(295)}***.`,
  ],
  [
    'an endless text',
    (response) => void pour(response, 400),
    `400 The server answered 400: ${'word '.repeat(60)}.`,
  ],
  [
    'a redirect',
    text(302, '', { location: 'https://else.example/login?secret=x' }),
    '302 The server redirects: POST /mcp answered 302 to https://else.example/login: register that address.',
  ],
  [
    '405',
    text(405, '', { allow: 'GET' }),
    '405 The server answered 405: it takes only GET, as an event stream of the older transport (sse) does.',
  ],
];

for (const [name, answer, expected] of ROWS) {
  test(`every door shows the status and the words: ${name}`, async () => {
    await serve();
    onCall = answer;
    const found = await atEachDoor();
    assert.equal(found, Object.fromEntries(Object.keys(found).map((door) => [door, expected])));
    if (expected.startsWith('4')) assert.is(calls, 6, 'the server is asked once by each door');
  });
}

for (const status of [400, 402, 406, 413, 415, 422, 451]) {
  test(`a ${status} is an answer: no other instance is asked`, async () => {
    await serve();
    await serve({}, 'b');
    onCall = text(status, 'no.');
    const found = await atEachDoor();
    const doors = Object.keys(found);
    assert.equal(
      found,
      Object.fromEntries(doors.map((door) => [door, `${status} The server answered ${status}: no.`])),
    );
    assert.is(calls, doors.length);
    for (let each = 0; each < 10; each += 1) await app.ask('POST', '/mcp/t/tools/call', { body: CALL });
    assert.is(calls, doors.length + 10, 'no instance was ejected');
  });
}

for (const status of [401, 404, 429]) {
  test(`a ${status} may be about one server: another one is asked`, async () => {
    await serve();
    await serve({}, 'b');
    onCall = text(status, 'no.');
    await app.ask('POST', '/mcp/t/tools/call', { body: CALL });
    assert.is(calls, 2);
  });
}

for (const status of [200, 400]) {
  test(`an error of the call itself shows no secrets: ${status}`, async () => {
    await serve();
    onCall = (response, { id }) => {
      const data = { 'k3y-of-the-gateway': ['x4711y', '4711', 4711, 12, 'a\nb'] };
      const error = { code: -32050, message: 'the pin 4711 of k3y-of-the-gateway', data };
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    };
    const { answer } = await postTo(app.gateway, { template: 't', ...modernRequest('tools/call', CALL) });
    const { message, data } = Object(answer.error);
    assert.is(message, 'the pin *** of ***');
    assert.equal(data['***'], ['x4711y', '***', '***', 12, 'a\nb']);
  });
}

test('a body that does not end is waited for no longer than other things that no caller needs', async () => {
  await serve();
  onCall = (response) => response.writeHead(400, { 'content-type': 'text/plain' }).write('the beginning');
  const { body } = await app.ask('POST', '/mcp/t/tools/call', { body: CALL });
  assert.is(body.detail, 'The server answered 400: the beginning.');
});

test('a server that refuses a newer revision with a bare "Invalid params" serves every door', async () => {
  const oldest: Answer = (response, asked) => {
    const { protocolVersion } = Object(asked.params);
    const isKnown = protocolVersion === '2025-06-18';
    const answer = isKnown ? result({ protocolVersion, capabilities: { tools: {} } }) : refused(200, -32602);
    answer(response, asked);
  };
  await serve({ initialize: oldest });
  onCall = text(422, 'reached');
  const found = new Set(Object.values(await atEachDoor()));
  assert.equal([...found], ['422 The server answered 422: reached.']);
});

test('a server that never let the gateway in: server/discover and the lists at /mcp say why', async () => {
  const refuse = text(403, 'the workspace is closed');
  const server = await startRawServer(serving({ initialize: refuse, ping: refuse, 'tools/list': refuse }));
  servers.push(server);
  const { gateway } = app;
  await errorOf(gateway.register('t', { id: 'a', endpoint: server.url }, { waitMs: 1_000 }));
  const why = /^No instance of "t" is healthy right now: a: .*403.*: the workspace is closed\.$/;
  const discovered = await postTo(gateway, { template: 't', ...modernRequest('server/discover', {}) });
  assert.match(Object(discovered.answer.error).message, why);
  const listed = await postTo(gateway, { template: undefined, ...modernRequest('tools/list', {}) });
  const [missing] = Object(listed.answer.result)._meta['stagedoor/missing'];
  assert.match(missing.reason, why);
});

/** Writes words until the connection is closed. */
function pour(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'text/plain' });
  const more = (): void => {
    if (!response.destroyed && response.write('word '.repeat(10_000))) setImmediate(more);
  };
  response.on('drain', more);
  more();
}

test.run();
