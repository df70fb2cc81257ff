// Clients of the legacy era behind a load balancer that knows no sessions: each request reaches the next of two complete gateways on one
// PostgreSQL, which forward it to the owner of the session. The channel alone: spec/cluster/channel/peer-channel.spec.ts.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../../src/config/config.ts';
import { type RunningServer, startServer } from '../../../../src/server/server.ts';
import { startEverything } from '../../../fixtures/everything-server.ts';
import { type Json, objectOr } from '../../../fixtures/wire.ts';
import { HeldTool, serving, text as textResult } from '../../../helpers/backends/function-backend.ts';
import { caller, newKey, tokenOf } from '../../../helpers/clients/caller.ts';
import { LegacyClient, textOf } from '../../../helpers/clients/mcp-client.ts';
import { Wire } from '../../../helpers/clients/mcp-wire.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { folderOfAll } from '../../../helpers/folder.ts';
import { GUARDED, PASSWORD, register } from '../../../helpers/programs/mcp-program.ts';
import { journey } from '../journey.ts';
import {
  ASKED,
  accepted,
  askOnce,
  capabilities,
  isServed,
  nodeEnv,
  refusalOf,
  retryOf,
} from '../mcp-nodes.ts';
import { startRoundRobin } from './round-robin.ts';

const { test, onPostgresql, before, opened, close, database } = await journey(
  'journey: sessions of two nodes behind a plain load balancer',
  { timeoutMs: 120_000 },
);
const folder = folderOfAll(test);

const held = new HeldTool();
let a: RunningServer;
let b: RunningServer;
let front: Wire;
let onlyA: Wire;
let onlyB: Wire;
let admin: ReturnType<typeof caller>;
let options: { readonly capabilities: Json; readonly headers: Readonly<Record<string, string>> };

before(async () => {
  [a, b] = [await start('a', database), await start('b', database)];
  const [urlA = '', urlB = ''] = [a.urls[0], b.urls[0]];
  const balancer = await startRoundRobin([urlA, urlB]);
  opened.unshift(balancer.close);
  [front, onlyA, onlyB] = [new Wire(balancer.url), new Wire(urlA), new Wire(urlB)];
  opened.unshift(() => [front, onlyA, onlyB].map((wire) => wire.close()));
  admin = caller(urlA, await tokenOf(urlA, 'admin', PASSWORD));
  const { headers } = await newKey(admin, 'clients');
  options = { capabilities, headers };
  const backend = await startEverything({ era: 'legacy' });
  opened.push(() => backend.close());
  await register(admin, 'legacy', [{ id: 'one', endpoint: backend.url }]);
  for (const { gateway } of [a, b]) {
    const handler = serving({
      held: held.body,
      echo: (args) => textResult(JSON.stringify(args)),
    });
    await gateway.register(
      'local',
      { id: gateway === a.gateway ? 'at-a' : 'at-b', handler },
      { waitMs: 5_000 },
    );
  }
  for (const template of ['legacy', 'local'])
    for (const wire of [onlyA, onlyB]) await isServed({ wire }, `/mcp/${template}`, options);
});
test.after(close);

onPostgresql('calls, notifications, questions and their answers, and DELETE reach the owner', async () => {
  const asked: string[] = [];
  const replies = {
    'elicitation/create': () => {
      asked.push('asked');
      return accepted;
    },
  };
  const clients = await Promise.all(
    Array.from({ length: 4 }, () => LegacyClient.open(front, '/mcp/legacy', { ...options, replies })),
  );
  for (const client of clients) {
    for (let turn = 0; turn < 4; turn += 1) {
      const { status, result } = await client.call('test_simple_text');
      assert.equal([status, textOf({ result })], [200, 'This is a simple text response for testing.']);
    }
    const { result } = await client.call('test_elicitation', { message: 'Who?' });
    assert.match(textOf({ result }), 'ada');
    const progress = await client.ask(
      'tools/call',
      { name: 'test_tool_with_progress', arguments: {} },
      {
        meta: { progressToken: 'p' },
      },
    );
    assert.equal(
      progress.notifications.map(({ method }) => method),
      Array.from({ length: 3 }, () => 'notifications/progress'),
    );
    assert.is(await client.close(), 200);
    assert.is((await client.ask('tools/list')).status, 404);
  }
  assert.is(asked.length, 4);
});

onPostgresql(
  'the stream of a session, opened at another node, has its messages, and is resumed there',
  async () => {
    const client = await LegacyClient.open(onlyA, '/mcp/legacy', options);
    const { sessionId } = client;
    const headers = { ...client.headers, 'Content-Type': undefined };
    const stream = await onlyB.stream('/mcp/legacy', { method: 'GET', headers });
    assert.equal([stream.status, stream.headers['content-type']], [200, 'text/event-stream']);
    assert.is((await client.call('test_trigger_tool_change')).status, 200);
    await stream.sees(({ method }) => method === 'notifications/tools/list_changed');
    stream.close();
    // The owner notices the disconnect at the other node: it accepts a new stream.
    await becomes(async () => {
      const next = await onlyB.stream('/mcp/legacy', { method: 'GET', headers });
      next.close();
      return next.status;
    }, 200);
    assert.is(client.sessionId, sessionId);
    assert.is(await client.close(), 200);
  },
);

onPostgresql('a call is cancelled at the owner by a message through another node', async () => {
  const client = await LegacyClient.open(onlyA, '/mcp/local', options);
  const before = held.cancelled;
  const call = onlyB.exchange('/mcp/local', { headers: client.headers, body: callText('held', {}, 7) });
  await becomes(() => held.waiting, held.waiting === 0 ? 1 : held.waiting);
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
  const sent = await onlyB.exchange('/mcp/local', {
    headers: client.headers,
    body: JSON.stringify(cancelled),
  });
  assert.is(sent.status, 202);
  await becomes(() => held.cancelled, before + 1);
  call.catch(() => undefined);
  assert.is(await client.close(), 200);
});

onPostgresql(
  'a call without a session that waits for its client goes on at the node where it waits',
  async () => {
    const first = await askOnce({ wire: onlyA }, '/mcp/legacy', options, 'tools/call', ASKED);
    const retry = retryOf(ASKED, first, accepted);
    const second = await askOnce({ wire: onlyB }, '/mcp/legacy', options, 'tools/call', retry);
    assert.match(textOf(second), 'ada');
    const again = await askOnce({ wire: onlyB }, '/mcp/legacy', options, 'tools/call', retry);
    assert.equal(refusalOf(again), [200, -32602, 'call_lost']);
  },
);

onPostgresql('arguments and results of some MiB cross', async () => {
  const client = await LegacyClient.open(onlyA, '/mcp/local', options);
  const big = 'x'.repeat(3 * 1024 * 1024);
  const { status, messages } = await onlyB.exchange('/mcp/local', {
    headers: client.headers,
    body: callText('echo', { big }, 1),
  });
  assert.equal([status, textOf(messages[0] ?? {})], [200, JSON.stringify({ big })]);
  const tooBig = await onlyB.exchange('/mcp/local', {
    headers: client.headers,
    body: callText('echo', { big: 'x'.repeat(5 * 1024 * 1024) }, 2),
  });
  assert.is(tooBig.status, 413);
});

onPostgresql('messages of HTTP+SSE reach the node that has the stream', async () => {
  const { headers } = options;
  const stream = await rawStream(onlyAUrl(), '/mcp/local/sse', headers);
  const path = await stream.until(/data: (\/mcp\/local\/messages\?sessionId=[\w-]{51})/);
  const post = (body: object) =>
    onlyB.exchange(path, {
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  const clientInfo = { name: 'old', version: '1' };
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo };
  assert.is((await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params })).status, 202);
  await stream.until(/"protocolVersion":"2024-11-05"/);
  assert.is((await post(JSON.parse(callText('echo', { a: 1 }, 1)))).status, 202);
  await stream.until(/\{\\"a\\":1\}/);
  stream.close();
});

onPostgresql('a session of another key, an unknown life and a wrong id are 404', async () => {
  const client = await LegacyClient.open(onlyA, '/mcp/local', options);
  const other = await newKey(admin, 'other');
  const ask = async (headers: Record<string, string>) =>
    (
      await onlyB.exchange('/mcp/local', {
        headers: { ...client.headers, ...headers },
        body: callText('echo', {}, 1),
      })
    ).status;
  await becomes(() => ask(other.headers), 404);
  assert.is(await ask({ 'Mcp-Session-Id': `ZZZZZZZZ${client.sessionId.slice(8)}` }), 404);
  assert.is(await ask({ 'Mcp-Session-Id': `${client.sessionId.slice(0, 50)}_` }), 404);
  assert.is(await ask({}), 200);
});

onPostgresql('requests count once for the rate limit, and only where they arrive', async () => {
  const { headers } = await newKey(admin, 'counted');
  const client = await LegacyClient.open(onlyA, '/mcp/local', { capabilities, headers });
  const remaining = async (wire: Wire): Promise<number> => {
    const answer = await wire.exchange('/mcp/local', {
      headers: client.headers,
      body: callText('echo', {}, 1),
    });
    assert.is(answer.status, 200);
    return Number(answer.headers['x-ratelimit-remaining']);
  };
  const [atA, atB] = [await remaining(onlyA), await remaining(onlyB)];
  assert.equal([await remaining(onlyB), await remaining(onlyA)], [atB - 1, atA - 1]);
});

onPostgresql('the call is in the audit log once, with the address of the client', async () => {
  const client = await LegacyClient.open(onlyA, '/mcp/local', options);
  const body = callText('echo', { audited: true }, 1);
  const headers = { ...client.headers, 'X-Request-ID': 'audited-request' };
  assert.is((await onlyB.exchange('/mcp/local', { headers, body })).status, 200);
  const entries = async () => {
    const { body: found } = await admin('GET /gateway/audit?action=tools/call&limit=1000');
    const items: Record<string, unknown>[] = Object(found).entries;
    return items.filter(({ request_id: id }) => id === 'audited-request').map(({ address }) => address);
  };
  await becomes(entries, ['127.0.0.1']);
});

onPostgresql('a revoked key loses its stream at both nodes', async () => {
  const { id, headers } = await newKey(admin, 'revoked');
  const client = await LegacyClient.open(onlyA, '/mcp/local', { capabilities, headers });
  const stream = await onlyB.stream('/mcp/local', {
    method: 'GET',
    headers: { ...client.headers, 'Content-Type': undefined },
  });
  assert.is(stream.status, 200);
  assert.is((await admin(`DELETE /auth/api-keys/${id}`)).status, 204);
  await becomes(() => stream.hasEnded, true, 15_000);
  await becomes(() => a.gateway.openCallers().has(`key:${id}`), false, 15_000);
  const again = () =>
    onlyB.exchange('/mcp/local', { headers: client.headers, body: callText('echo', {}, 1) });
  await becomes(async () => (await again()).status, 401);
});

onPostgresql('a request to the peer listener from outside is 401, and in the audit log', async () => {
  const url = await addressOf('a');
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const answer = await fetch(`${url}/mcp/local`, {
    method: 'POST',
    body: '{}',
    headers: { 'Peer-Token': 'x.y' },
  });
  assert.is(answer.status, 401);
  const recorded = async () => {
    const { body: found } = await admin('GET /gateway/audit?limit=1000');
    const items: Record<string, unknown>[] = Object(found).entries;
    return items.filter(({ action }) => action === 'peer channel: forged token').map(({ status }) => status);
  };
  await becomes(recorded, [401]);
});

onPostgresql('a stolen token is 401 at the public port and at another node', async () => {
  const tokens: unknown[] = [];
  const steal = (message: unknown): void => {
    const { url, headers } = Object(message).request;
    if (url === '/mcp/local' && headers['peer-hops'] === 'session') tokens.push(headers['peer-token']);
  };
  const client = await LegacyClient.open(onlyA, '/mcp/local', options);
  const { 'Mcp-Session-Id': sessionId = '' } = client.headers;
  const body = callText('echo', {}, 7);
  subscribe('http.server.request.start', steal);
  assert.is((await onlyB.exchange('/mcp/local', { headers: client.headers, body })).status, 200);
  unsubscribe('http.server.request.start', steal);
  assert.is(tokens.length, 1);
  const token = String(tokens[0]); // of b, for a
  const sent = { 'Content-Type': 'application/json', 'Mcp-Session-Id': sessionId };
  const stolen = { ...sent, 'Peer-Token': token, 'Peer-Hops': 'session', 'Peer-Client-Address': '192.0.2.7' };
  const ask = async (url: string, headers: Record<string, string>, method = 'POST') => {
    const answer = await fetch(url, { method, headers, ...(method === 'POST' ? { body } : {}) });
    const { request_id: _, ...problem } = Object(await answer.json());
    return [answer.status, answer.headers.get('www-authenticate'), problem];
  };
  for (const { urls } of [a, b])
    for (const [path, method, status] of [
      ['/mcp/local', 'POST', 401],
      ['/gateway/sessions', 'GET', 401],
      ['/peer/greeting', 'GET', 404],
      ['/peer/exchange', 'POST', 404],
    ] as const) {
      const url = `${urls[0]}${path}`;
      const refused = await ask(url, stolen, method);
      assert.is(refused[0], status, url);
      assert.equal(refused, await ask(url, sent, method), 'as any request without credentials');
    }
  const [ofA, ofB] = [await addressOf('a'), await addressOf('b')];
  assert.is((await fetch(`${ofA}/mcp/local`, { method: 'POST', headers: stolen, body })).status, 200);
  assert.is((await fetch(`${ofB}/mcp/local`, { method: 'POST', headers: stolen, body })).status, 401);
  const recorded = async () => {
    const { body: found } = await admin('GET /gateway/audit?limit=1000');
    const items: Record<string, unknown>[] = Object(found).entries;
    const action = 'peer channel: token for another node';
    return items.filter((item) => item.action === action).map(({ status, subject }) => [status, subject]);
  };
  await becomes(recorded, [[401, 'POST /mcp/local']]);
});

onPostgresql('a node that stops waits for its calls at other nodes', async () => {
  const client = await LegacyClient.open(onlyA, '/mcp/local', options);
  const c = await start('c', database);
  const onlyC = new Wire(String(c.urls[0]));
  await isServed({ wire: onlyC }, '/mcp/legacy', options);
  await c.gateway.register('local', { id: 'at-c', handler: serving({ held: held.body }) }, { waitMs: 5_000 });
  const { waiting } = held;
  const call = onlyC.exchange('/mcp/local', { headers: client.headers, body: callText('held', {}, 1) });
  await becomes(() => held.waiting, waiting + 1);
  const closing = c.close();
  await becomes(async () => (await fetch(`${c.urls[0]}/readyz`)).status, 503);
  for (let left = held.waiting; left > 0; left -= 1) held.answer();
  const { status, messages } = await call;
  assert.equal([status, textOf(messages[0] ?? {})], [200, 'held']);
  await closing;
  onlyC.close();
});

const external = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

(external ? onPostgresql : test.needs(false, 'needs another address than loopback'))(
  'off loopback the nodes talk over TLS with the key of their secret',
  async () => {
    const flags = { 'cluster-advertise': String(external) };
    const [d, e] = [await start('d', database, flags), await start('e', database, flags)];
    const address = await addressOf('d');
    assert.match(address, `https://${external}:`);
    const [onlyD, onlyE] = [new Wire(String(d.urls[0])), new Wire(String(e.urls[0]))];
    for (const wire of [onlyD, onlyE]) await isServed({ wire }, '/mcp/legacy', options);
    const client = await LegacyClient.open(onlyD, '/mcp/legacy', options);
    const sent = { headers: client.headers, body: callText('test_simple_text', {}, 1) };
    const { status, messages } = await onlyE.exchange('/mcp/legacy', sent);
    assert.equal([status, textOf(messages[0] ?? {})], [200, 'This is a simple text response for testing.']);
    const plain = await fetch(address.replace('https', 'http')).catch(() => 'refused');
    assert.is(plain, 'refused');
    for (const wire of [onlyD, onlyE]) wire.close();
  },
);

onPostgresql(
  'while the owner lives and cannot be reached, its sessions are answered 503 with Retry-After',
  async () => {
    const silent = createServer((socket) => opened.unshift(() => socket.destroy())).listen(0, '127.0.0.1');
    opened.unshift(() => silent.close());
    await once(silent, 'listening');
    const { port } = Object(silent.address());
    const c = await start('unreachable', database, { 'cluster-advertise': `127.0.0.1:${port}` });
    const onlyC = new Wire(String(c.urls[0]));
    await isServed({ wire: onlyC }, '/mcp/legacy', options);
    const { headers } = await LegacyClient.open(onlyC, '/mcp/legacy', options);
    const answer = await onlyB.exchange('/mcp/legacy', {
      headers,
      body: callText('test_simple_text', {}, 5),
    });
    assert.equal([answer.status, answer.headers['retry-after']], [503, '1']);
    assert.is(objectOr(answer.messages[0]?.error?.data).error_code, 'NODE_UNAVAILABLE');
    onlyC.close();
  },
);

test.run();

async function start(
  id: string,
  database: Parameters<typeof nodeEnv>[0],
  flags: Record<string, string> = {},
): Promise<RunningServer> {
  const env = { ...GUARDED, ...nodeEnv(database), GATEWAY_NODE_ID: id };
  const config = loadConfig({ flags: { port: '0', host: '127.0.0.1', ...flags }, env, cwd: folder() });
  const node = await startServer(config);
  opened.unshift(() => node.close());
  return node;
}

/** The address of a live node for the others. */
async function addressOf(id: string): Promise<string> {
  let address: unknown;
  await becomes(async () => {
    const nodes: Record<string, unknown>[] = Object((await admin('GET /gateway/nodes')).body).nodes;
    address = nodes.find((node) => node.id === id && node.state === 'live')?.address;
    return address !== undefined;
  }, true);
  return String(address);
}

function onlyAUrl(): string {
  return String(a.urls[0]);
}

function callText(name: string, args: object, id: number): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } });
}

/** An event stream as text. */
async function rawStream(url: string, path: string, headers: Record<string, string>) {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n${lines.join('')}\r\n`,
  );
  let received = '';
  socket.on('data', (part) => {
    received += part.toString();
  });
  return {
    /** The text that the pattern captures. */
    until: async (pattern: RegExp): Promise<string> => {
      await becomes(() => pattern.test(received), true);
      return pattern.exec(received)?.[1] ?? '';
    },
    close: () => socket.destroy(),
  };
}
