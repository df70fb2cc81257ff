// What plain HTTP shows of an endpoint: each fault at a server that has it, and nothing at servers without faults, of both eras.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { remedyOf } from '../../../src/gateway/doctor/faults.ts';
import { probeEndpoint } from '../../../src/gateway/doctor/http-probe.ts';
import { BackendFetch } from '../../../src/vault/backend-fetch.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the doctor at endpoints', { timeoutMs: 30_000 });

type Say = (message: JsonObject, request: IncomingMessage, response: ServerResponse) => unknown;

const SESSION = 'session-1';
const TOOLS = [{ name: 'a', inputSchema: { type: 'object' } }];
const COMPLETE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

const isModern = ({ headers }: IncomingMessage) => headers['mcp-protocol-version'] === '2026-07-28';

/** The answer of a server without faults; undefined for a notification. */
function answerTo({ id, method }: JsonObject, request: IncomingMessage): JsonObject | undefined {
  if (id === undefined) return undefined;
  const all = isModern(request)
    ? {
        'server/discover': { ...COMPLETE, supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
        'tools/list': { ...COMPLETE, tools: TOOLS },
      }
    : {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: {} },
        'tools/list': { tools: TOOLS },
        ping: {},
      };
  const result = new Map<unknown, JsonObject>(Object.entries(all)).get(method);
  const error = { code: -32601, message: 'Method not found' };
  return { jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) };
}

const plain: Say = (message, request, response) => {
  if (message.id === undefined) return response.writeHead(202).end();
  const session = request.headers['mcp-session-id'];
  if (session !== undefined && session !== SESSION) return response.writeHead(404).end();
  const opened = message.method === 'initialize' ? { 'mcp-session-id': SESSION } : {};
  return response
    .writeHead(200, { 'content-type': 'application/json', ...opened })
    .end(JSON.stringify(answerTo(message, request)));
};

/** The same, but for one method. */
const but =
  (method: string, say: Say): Say =>
  (message, ...rest) =>
    (message.method === method ? say : plain)(message, ...rest);

/** The same, with another answer. */
const changed =
  (method: string, change: (answer: JsonObject, request: IncomingMessage) => unknown): Say =>
  (message, request, response) => {
    if (message.method !== method) return plain(message, request, response);
    const answer = change(answerTo(message, request) ?? {}, request);
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  };

const withResult = (method: string, more: JsonObject): Say =>
  changed(method, (answer) => ({ ...answer, result: { ...Object(answer.result), ...more } }));

/** The number of sessions that were ended. */
let ended = 0;

/** The codes that are found. Waits are shorter, and the clock runs as `now` says. */
async function codesAt(say: Say, now: () => number = systemClock.now, untilMs?: number): Promise<string[]> {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (request.method === 'DELETE') {
      ended += 1;
      return void response.writeHead(200).end();
    }
    say(JSON.parse(text), request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const alarm = (ms: number, callback: () => void) => systemClock.alarm(ms / 10, callback);
  const fetch = new BackendFetch({
    clock: { ...systemClock, alarm },
    isDenied: () => false,
    openNetworks: [],
  });
  const time = { now, untilMs };
  const found = await probeEndpoint(endpoint, {}, (request) => fetch.send(endpoint, endpoint, request), time);
  server.closeAllConnections();
  server.close();
  for (const { code } of found) assert.ok(remedyOf(code), code);
  return found.map(({ code }) => code);
}

const asEvents =
  (events: (answer: string) => string, isLeftOpen = false): Say =>
  (message, request, response) => {
    if (message.id === undefined || message.method === 'server/discover')
      return plain(message, request, response);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(events(JSON.stringify(answerTo(message, request))));
    return isLeftOpen ? undefined : response.end();
  };

test('nothing is found where there are no faults', async () => {
  assert.equal(await codesAt(plain), []);
  const legacyOnly = but('server/discover', (_message, _request, response) =>
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'no session' } })),
  );
  assert.equal(await codesAt(legacyOnly), []);
  const modernOnly: Say = (message, request, response) =>
    isModern(request)
      ? plain(message, request, response)
      : response
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no' } }));
  assert.equal(await codesAt(modernOnly), []);
  const half = withResult('server/discover', { ttlMs: null });
  assert.equal(
    await codesAt((message, request, response) =>
      (message.method === 'initialize' ? modernOnly : half)(message, request, response),
    ),
    ['modern-fields'],
  );
  const stream = asEvents((answer) => `id: 1\nretry: 100\ndata: \n\n: comment\n\ndata: ${answer}\n\n`);
  assert.equal(await codesAt(stream), []);
});

test('faults of messages are named', async () => {
  const cases: readonly (readonly [code: string, say: Say])[] = [
    [
      'refuses-revision',
      (message, ...rest) => {
        const refused = ({ id }: JsonObject) => ({ jsonrpc: '2.0', id, error: { code: -32602 } });
        const method = message.method === 'server/discover' ? 'server/discover' : 'initialize';
        return changed(method, refused)(message, ...rest);
      },
    ],
    ['null-member', changed('ping', (answer) => ({ ...answer, error: null }))],
    ['id-null', changed('stagedoor/unknown', (answer) => ({ ...answer, id: null }))],
    ['id-as-text', changed('ping', (answer) => ({ ...answer, id: String(answer.id) }))],
    ['wrong-id', changed('ping', (answer) => ({ ...answer, id: 1 }))],
    ['array-answer', changed('ping', (answer) => [answer])],
    ['answers-twice', changed('ping', (answer) => [answer, answer])],
    ['odd-cursor', withResult('tools/list', { nextCursor: '' })],
    ['odd-cursor', withResult('tools/list', { nextCursor: null })],
    ['modern-fields', withResult('server/discover', { ttlMs: 'long' })],
    [
      'era-announced',
      changed('tools/list', (answer, request) =>
        isModern(request) ? { jsonrpc: '2.0', id: answer.id, error: { code: -32601, message: '' } } : answer,
      ),
    ],
    [
      'eras-differ',
      changed('tools/list', (answer, request) =>
        isModern(request) ? answer : { ...answer, result: { tools: [...TOOLS, { name: 'b' }] } },
      ),
    ],
  ];
  for (const [code, say] of cases) assert.ok((await codesAt(say)).includes(code), code);
  const large = but('tools/list', ({ id }, request, response) => {
    const text = JSON.stringify(answerTo({ id, method: 'tools/list' } as JsonObject, request));
    return response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(text.replace('"a"', '"a","title":"12345678901234567890","_meta":{"n":12345678901234567890}'));
  });
  assert.equal(await codesAt(large), ['large-integer']);
  const fine = withResult('tools/list', { _meta: { text: 'n: 12345678901234567890', float: 1e300 } });
  assert.equal(await codesAt(fine), []);
});

test('faults of HTTP are named', async () => {
  const end =
    (status: number, body = '', headers = {}): Say =>
    (_message, _request, response) =>
      response.writeHead(status, headers).end(body);
  const unknown = 'stagedoor/unknown';
  assert.equal(await codesAt(but('notifications/initialized', end(200, 'ok'))), ['initialized-answer']);
  assert.equal(await codesAt(but('server/discover', end(500, '<html>'))), ['discover-answer']);
  assert.equal(await codesAt(but(unknown, end(400, 'What?'))), ['refuses-with-text']);
  assert.equal(await codesAt(but('ping', end(200, 'pong', { 'content-type': 'application/json' }))), [
    'not-json-rpc',
  ]);
  assert.equal(await codesAt(end(401)), ['refused', 'refused-silently']);
  assert.equal(await codesAt(end(401, 'no key')), ['refused']);
  assert.equal(await codesAt(end(403, '', { 'www-authenticate': 'Bearer' })), ['refused']);
  const forgets: Say = (message, request, response) => {
    const session = request.headers['mcp-session-id'] ?? SESSION;
    return (session === SESSION ? plain : end(400))(message, request, response);
  };
  assert.equal(await codesAt(forgets), ['session-status']);
  const gzipped = but('ping', (message, request, response) =>
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      .end(gzipSync(JSON.stringify(answerTo(message, request)))),
  );
  assert.equal(await codesAt(gzipped), ['compressed']);
  const endless: Say = (_message, _request, response) => response.writeHead(400).write('no');
  assert.equal(await codesAt(but(unknown, endless)), ['endless-refusal']);
  assert.equal(await codesAt(but('server/discover', () => undefined)), ['discover-silent']);
});

test('faults of event streams are named', async () => {
  const done = asEvents((answer) => `data: ${answer}\n\ndata: [DONE]\n\n`);
  assert.equal(await codesAt(done), ['event-text']);
  const open = asEvents((answer) => `data: ${answer}\r\n\r\n`, true);
  assert.equal(await codesAt(open), ['open-stream']);
});

test('slow answers are named with their time', async () => {
  let atMs = 0;
  const slow =
    (method: string): Say =>
    (message, ...rest) => {
      if (message.method === method) atMs += 6_000;
      return plain(message, ...rest);
    };
  assert.equal(await codesAt(slow('initialize'), () => atMs), ['slow-start']);
  assert.equal(await codesAt(slow('tools/list'), () => atMs), ['slow-list']);
});

test('no message is sent after the time of all, and what was found until then counts', async () => {
  for (const last of ['initialize', 'stagedoor/unknown', 'tools/list', 'server/discover']) {
    let atMs = 0;
    const asked: unknown[] = [];
    const late: Say = (message, ...rest) => {
      asked.push(message.method);
      if (message.method === last) atMs = 60_000;
      plain(message, ...rest);
    };
    ended = 0;
    assert.equal(
      (await codesAt(late, () => atMs, 60_000)).filter((code) => !code.startsWith('slow')),
      [],
      last,
    );
    assert.equal([asked.at(-1), ended], [last, 1]);
  }
});

test.run();
