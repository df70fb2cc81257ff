// Sessions whose node is gone: real gateway processes on one PostgreSQL behind a plain load balancer. A session continues at the node that
// gets its next request; the other nodes find it there.

import * as assert from 'uvu/assert';
import { startEverything } from '../../../fixtures/everything-server.ts';
import type { Json } from '../../../fixtures/wire.ts';
import { newKey } from '../../../helpers/clients/caller.ts';
import { LegacyClient, textOf } from '../../../helpers/clients/mcp-client.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { journey } from '../journey.ts';
import { capabilities, isServed, type McpNode, startNode } from '../mcp-nodes.ts';
import { startRoundRobin } from './round-robin.ts';

const { test, onPostgresql, before, opened, database } = await journey(
  'journey: sessions of nodes that are gone',
  { timeoutMs: 180_000 },
);
const SIMPLE = 'This is a simple text response for testing.';
let nodes: Record<'a' | 'b' | 'c', McpNode>;
let options: { readonly capabilities: object; readonly headers: Readonly<Record<string, string>> } & object;

before(async () => {
  nodes = { a: await start('a'), b: await start('b'), c: await start('c') };
  const { headers } = await newKey(nodes.a.admin, 'clients');
  options = { capabilities, headers };
  const backend = await startEverything({ era: 'legacy' });
  opened.push(() => backend.close());
  await register(nodes.a.admin, 'legacy', [{ id: 'one', endpoint: backend.url }]);
  for (const node of Object.values(nodes)) await isServed(node, '/mcp/legacy', options as never);
});

onPostgresql('kill -9: the next request of each session is answered, at any node', async () => {
  const { a, b, c } = nodes;
  await sees(b, ['a live', 'b live', 'c live']);
  const clients = await clientsAt(a, 6);
  a.program.signal('SIGKILL');
  const startedAtMs = performance.now();
  await Promise.all(
    clients.map(async ({ sessionId }, n) => {
      const node = n % 2 === 0 ? b : c;
      assert.equal(await callAt(node, sessionId), [200, SIMPLE], `session ${n}`);
    }),
  );
  assert.ok(performance.now() - startedAtMs < 10_000, 'not after the expiry of the row');
  // Each goes on at both nodes, under its id.
  for (const { sessionId } of clients)
    for (const node of [b, c, b, c]) assert.equal(await callAt(node, sessionId), [200, SIMPLE]);
});

onPostgresql('two nodes that get a request of one session at once both answer it', async () => {
  const { b, c } = nodes;
  const d = await start('d');
  await isServed(d, '/mcp/legacy', options as never);
  await sees(b, ['d live']);
  await sees(c, ['d live']);
  const clients = await clientsAt(d, 10);
  d.program.signal('SIGKILL');
  await Promise.all(
    clients.flatMap(({ sessionId }) =>
      [b, c].map(async (node) => assert.equal(await callAt(node, sessionId), [200, SIMPLE])),
    ),
  );
  const { body } = await b.admin('GET /gateway/sessions');
  const { body: others } = await c.admin('GET /gateway/sessions');
  // The part of the other node counts: of a session at two nodes, each names the other one.
  const placesIn = (list: unknown) => Object(list).sessions.map(({ id, node }: Json) => `${id} ${node}`);
  assert.equal(placesIn(body), placesIn(others), 'no session is open at two nodes');
});

onPostgresql(
  'a node that comes back under its id gets its sessions of before through the balancer',
  async () => {
    const { b, c } = nodes;
    const clients = await clientsAt(c, 4);
    const { port } = c;
    c.program.signal('SIGKILL');
    await c.program.end();
    const again = await startNode(database, { id: 'c', port });
    opened.unshift(again.remove);
    nodes.c = again;
    const balancer = await startRoundRobin([b.url, again.url]);
    opened.unshift(balancer.close);
    for (const { sessionId } of clients)
      for (let n = 0; n < 4; n += 1) assert.equal(await callTo(balancer.url, sessionId), [200, SIMPLE]);
  },
);

onPostgresql(
  'a frozen node: requests of its sessions wait, and go on elsewhere; it wakes under a new life',
  async () => {
    const { b, c } = nodes;
    await sees(b, ['c live']);
    await sees(c, ['b live']);
    const clients = await clientsAt(c, 4);
    const others = await clientsAt(b, 2);
    c.program.signal('SIGSTOP');
    // It reads these when it wakes, before it can know that its life has ended: those of its former sessions, of others, and a new client.
    const waiting = [...clients, ...others].map(({ sessionId }) => callAt(c, sessionId));
    const opening = clientsAt(c, 1);
    const answers = await Promise.all(clients.map(({ sessionId }) => callAt(b, sessionId)));
    c.program.signal('SIGCONT');
    assert.equal(
      answers,
      clients.map(() => [200, SIMPLE]),
    );
    assert.equal(
      await Promise.all(waiting),
      waiting.map(() => [200, SIMPLE]),
    );
    clients.push(...(await opening));
    // It forwards the requests of its former sessions, and its new ones are found by the others.
    for (const { sessionId } of clients)
      for (const node of [c, b]) assert.equal(await callAt(node, sessionId), [200, SIMPLE]);
    const [fresh] = await clientsAt(c, 1);
    for (const node of [b, c, b]) assert.equal(await callAt(node, String(fresh?.sessionId)), [200, SIMPLE]);
  },
);

onPostgresql('HTTP+SSE: the node that the stream leads through dies, and the session continues', async () => {
  const { a, b, c } = { ...nodes, a: await start('e') };
  await isServed(a, '/mcp/legacy', options as never);
  await sees(c, ['b live', 'e live']);
  const first = await sseAt(b);
  const { path, lastId } = first;
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  await postTo(b, path, { id: 1, method: 'initialize', params });
  await first.sees(/"id":1,|"id":1}/);
  const through = await sseAt(a, lastId);
  const call = { method: 'tools/call', params: { name: 'test_simple_text', arguments: {} } };
  // Its answer may go with that node, or wait for the next stream.
  a.program.signal('SIGKILL');
  const early = postTo(b, path, { id: 2, ...call });
  await through.ended;
  const again = await sseAt(c, lastId);
  await early;
  await again.sees(/"id":2\b.*This is a simple text/);
  await postTo(c, path, { id: 3, ...call });
  await again.sees(/"id":3\b.*This is a simple text/);
  again.close();
});

onPostgresql(
  'a node that stops: no request of its sessions fails at another node, and none waits for its end',
  async () => {
    const { b, c } = nodes;
    await sees(b, ['c live']);
    const clients = await clientsAt(c, 4);
    let hasEnded = false;
    const longest: number[] = [];
    const running = Promise.all(
      clients.map(async ({ sessionId }) => {
        while (!hasEnded) {
          const sinceMs = performance.now();
          assert.equal(await callAt(b, sessionId), [200, SIMPLE]);
          longest.push(performance.now() - sinceMs);
        }
      }),
    );
    c.program.signal('SIGTERM');
    const ending = c.program.end().then(() => {
      hasEnded = true;
    });
    await Promise.all([running, ending]);
    for (const { sessionId } of clients) assert.equal(await callAt(b, sessionId), [200, SIMPLE]);
    const { url } = database;
    const again = await startNode({ url }, { id: 'c' });
    opened.unshift(again.remove);
    nodes.c = again;
    for (const { sessionId } of clients) assert.equal(await callAt(again, sessionId), [200, SIMPLE]);
  },
);

test.run();

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}

function clientsAt(node: McpNode, count: number): Promise<LegacyClient[]> {
  const one = () => LegacyClient.open(node.wire, '/mcp/legacy', options as never);
  return Promise.all(Array.from({ length: count }, one));
}

function callAt(node: McpNode, sessionId: string): Promise<readonly unknown[]> {
  return callTo(node.url, sessionId);
}

/** A call that may be repeated. */
async function callTo(url: string, sessionId: string): Promise<readonly unknown[]> {
  const answer = await fetch(`${url}/mcp/legacy`, {
    method: 'POST',
    headers: {
      ...options.headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': sessionId,
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: Math.random().toString(), method: 'tools/call' },
      params: { name: 'test_simple_text', arguments: {} },
    }),
  });
  const body = await answer.text();
  const json = /^data: (.+)$/m.exec(body)?.[1] ?? body;
  const isResult = answer.status === 200 && JSON.parse(json).result !== undefined;
  return [answer.status, isResult ? textOf(JSON.parse(json)) : body];
}

/** A stream of HTTP+SSE, once its first event has come. */
async function sseAt(node: McpNode, lastId?: string) {
  const left = new AbortController();
  const headers = { ...options.headers, ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }) };
  const { body } = await fetch(`${node.url}/mcp/legacy/sse`, { headers, signal: left.signal });
  let seen = '';
  const reading = async () => {
    for await (const part of body ?? []) seen += Buffer.from(part);
  };
  const ended = reading().catch(() => undefined);
  const found = (wanted: RegExp) => becomes(() => wanted.test(seen), true);
  await found(/\n\n/);
  return {
    ...{ ended, path: /^data: (.+)$/m.exec(seen)?.[1] ?? '', lastId: /^id: (.+)$/m.exec(seen)?.[1] ?? '' },
    sees: (wanted: RegExp | string) => found(new RegExp(wanted)),
    close: () => left.abort(),
  };
}

async function postTo(node: McpNode, path: string, message: object): Promise<void> {
  const headers = { ...options.headers, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  assert.is((await fetch(`${node.url}${path}`, { method: 'POST', headers, body })).status, 202);
}

async function sees(node: McpNode, wanted: readonly string[]): Promise<void> {
  await becomes(async () => {
    const { body } = await node.admin('GET /gateway/nodes');
    const states = Object(body).nodes.map(({ id, state }: { id: string; state: string }) => `${id} ${state}`);
    return wanted.every((state) => states.includes(state));
  }, true);
}
