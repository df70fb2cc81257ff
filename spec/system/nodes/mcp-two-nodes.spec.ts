// MCP clients whose requests reach different nodes of one deployment: two real gateways on one real PostgreSQL, with a plain
// load balancer in front. Each node serves requests that the other began, or refuses them with a reason. Programs and killed
// nodes: mcp-nodes-apart.spec.ts; revoked keys: mcp-revoked-elsewhere.spec.ts.

import {
  Client as ModernSdkClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { startEverything } from '../../fixtures/everything-server.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { startTaskServer } from '../../fixtures/task-server.ts';
import { LegacyClient, ModernClient, textOf } from '../../helpers/mcp-client.ts';
import { register } from '../../helpers/mcp-program.ts';
import { Wire } from '../../helpers/mcp-wire.ts';
import { type FreshDatabase, freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { type Balancer, startBalancer } from './mcp-balancer.ts';
import {
  ASKED,
  accepted,
  askOnce,
  capabilities,
  heardWithinMs,
  isServed,
  type McpNode,
  refusalOf,
  requestsAt,
  retryOf,
  SIMPLE,
  STATEFUL,
  startNode,
  startPair,
} from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('journey: MCP on two nodes', { timeoutMs: 120_000 });
const onPostgresql = test.needs(server.url, server.skip);

const replies = { 'elicitation/create': () => accepted };

let database: FreshDatabase;
let { a, b, options } = {} as Awaited<ReturnType<typeof startPair>>; // before the first test
let inTurn: Balancer;
/** Last opened, first closed. */
const opened: (() => unknown)[] = [];

test.before(async () => {
  if (server.url === undefined) return;
  database = await freshDatabase(server);
  opened.unshift(database.drop);
  ({ a, b, options } = await startPair(database, opened));
  inTurn = await balancer([a, b]);
  for (const name of ['one', 'two']) {
    await offer('modern', name, startEverything({ name, era: 'modern' }));
    await offer('pages', name, startHttpServer({ name, era: 'modern', pages: 3 }));
    await offer('tasks', name, startTaskServer());
  }
  await offer('legacy', 'one', startEverything({ era: 'legacy' }));
  for (const template of ['modern', 'pages', 'tasks', 'legacy'])
    await isServed(b, `/mcp/${template}`, options);
});
test.after(async () => {
  for (const close of opened) await close();
});

onPostgresql('either node serves plain calls of a modern client', async () => {
  const client = new ModernSdkClient(
    { name: 'spec', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const before = inTurn.taken.length;
  await client.connect(transportTo(ModernTransport, inTurn, '/mcp/modern'));
  for (let calls = 4; calls > 0; calls -= 1) {
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === SIMPLE.name));
    assert.match(JSON.stringify(await client.callTool(SIMPLE)), 'simple');
  }
  await client.close();
  assert.equal([...new Set(inTurn.taken.slice(before))].sort(), [0, 1]);
});

for (const [path, prefix] of [
  ['/mcp/modern', ''],
  ['/mcp', 'modern__'],
] as const) {
  onPostgresql(
    `rounds of a call at ${path} continue at another node, with the instance that asked`,
    async () => {
      const client = new ModernClient(wireTo(inTurn), path, { ...options, replies });
      for (let calls = 4; calls > 0; calls -= 1) {
        const before = inTurn.taken.length;
        // The states of the call are encrypted with the key of the instance's process.
        const outcome = await client.call(`${prefix}test_input_required_result_multi_round`);
        assert.equal(outcome.asked, ['elicitation/create', 'elicitation/create']);
        assert.match(textOf(outcome), 'ada');
        const [first, second, third] = inTurn.taken.slice(before);
        assert.equal([first !== second, first === third], [true, true]);
      }
    },
  );
}

onPostgresql('a node with another secret refuses request states and cursors with a reason', async () => {
  const other = await startNode(database, { secret: 'another secret, which has 32 bytes or more' });
  try {
    await isServed(other, '/mcp/modern', options);
    const asked = await askOnce(a, '/mcp/modern', options, 'tools/call', STATEFUL);
    const retry = retryOf(STATEFUL, asked, accepted);
    const refused = await askOnce(other, '/mcp/modern', options, 'tools/call', retry);
    assert.equal(refusalOf(refused), [200, -32602, 'invalid_request_state']);
    const { nextCursor: cursor } = (await askOnce(a, '/mcp/pages', options, 'tools/list')).result;
    const unread = await askOnce(other, '/mcp/pages', options, 'tools/list', { cursor });
    assert.equal(refusalOf(unread), [200, -32602, 'invalid_cursor']);
  } finally {
    await other.remove();
  }
});

for (const [path, name] of [
  ['/mcp/tasks', 'begin'],
  ['/mcp', 'tasks__begin'],
] as const) {
  onPostgresql(`either node finds a task at ${path}, and counts only requests of clients`, async () => {
    for (const [here, there] of [
      [a, b],
      [b, a],
    ] as const) {
      const begun = await askOnce(here, path, options, 'tools/call', { name, arguments: {} });
      const { taskId } = begun.result;
      const named = { headers: { 'Mcp-Name': String(taskId) } };
      const before = await requestsAt(there);
      for (const asked of [here, there, here, there, there]) {
        const got = await askOnce(asked, path, options, 'tasks/get', { taskId }, named);
        assert.equal([got.result.status, got.instanceId], ['working', begun.instanceId]);
      }
      const session = await LegacyClient.open(there.wire, path, options);
      assert.is((await session.ask('tasks/get', { taskId })).result?.status, 'working');
      assert.is(await session.close(), 200);
      assert.is((await requestsAt(there)) - before, 4);
    }
  });
}

onPostgresql('a client of one node gets tools/list_changed for a registration at the other', async () => {
  const wanted = { toolsListChanged: true };
  const streams = await Promise.all(
    ['/mcp/modern', '/mcp'].map((path) => new ModernClient(b.wire, path, options).listen(wanted)),
  );
  for (const stream of streams)
    await stream.sees(({ method }) => method === 'notifications/subscriptions/acknowledged');
  await offer('modern', 'three', startEverything({ name: 'three', era: 'modern' }));
  for (const stream of streams) {
    await stream.sees(({ method }) => method === 'notifications/tools/list_changed', heardWithinMs);
    stream.close();
  }
  const joined = await new ModernClient(b.wire, '/mcp', options).listen(wanted);
  await offer('late', 'one', startEverything({ name: 'late', era: 'modern' }));
  await joined.sees(({ method }) => method === 'notifications/tools/list_changed', heardWithinMs);
  joined.close();
  await isServed(b, '/mcp/late', options);
});

onPostgresql(
  'SDK clients with a session work with stickiness by Mcp-Session-Id, and fail behind round robin',
  async () => {
    const sticky = await balancer([a, b], ['Mcp-Session-Id']);
    const clients = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const client = new Client({ name: 'spec', version: '1' }, { capabilities });
        client.setRequestHandler(ElicitRequestSchema, () => ({ ...accepted, action: 'accept' as const }));
        await client.connect(transportTo(StreamableHTTPClientTransport, sticky, '/mcp/legacy'));
        return client;
      }),
    );
    for (let calls = 3; calls > 0; calls -= 1) {
      for (const client of clients) {
        assert.match(JSON.stringify(await client.callTool(SIMPLE)), 'simple');
        assert.match(JSON.stringify(await client.callTool(ASKED)), 'ada');
      }
    }
    for (const client of clients) await client.close();
    assert.equal([...new Set(sticky.taken)].sort(), [0, 1]);
    // With round robin the handshake itself fails.
    const lost = new Client({ name: 'spec', version: '1' });
    const connecting = lost.connect(transportTo(StreamableHTTPClientTransport, inTurn, '/mcp/legacy'));
    const refusal: unknown = await connecting.catch((error: unknown) => error);
    assert.is(Object(refusal).code, 404, String(refusal));
    await lost.close();
  },
);

test.run();

async function balancer(nodes: readonly McpNode[], stickTo: readonly string[] = []): Promise<Balancer> {
  const started = await startBalancer(
    nodes.map(({ url }) => url),
    { stickTo },
  );
  opened.unshift(started.close);
  return started;
}

function wireTo({ url }: Balancer): Wire {
  const wire = new Wire(url);
  opened.unshift(() => wire.close());
  return wire;
}

/** Registers a backend at A; B learns of it. */
async function offer(
  template: string,
  name: string,
  starting: Promise<{ readonly url: string; close(): Promise<void> }>,
): Promise<void> {
  const backend = await starting;
  opened.push(() => backend.close());
  await register(a.admin, template, [{ id: `${template}-${name}`, endpoint: backend.url }]);
}

function transportTo<T>(
  Transport: new (url: URL, init: { requestInit: { headers: Readonly<Record<string, string>> } }) => T,
  { url }: Balancer,
  path: string,
): T {
  return new Transport(new URL(url + path), { requestInit: { headers: options.headers } });
}
