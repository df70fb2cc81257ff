// A node that is drained while clients of the official SDK use its sessions, behind a load balancer that knows nothing of it: real gateway
// processes on one PostgreSQL.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { WATCHED_URI } from '../../../fixtures/everything/resources.ts';
import { startEverything } from '../../../fixtures/everything-server.ts';
import { newKey } from '../../../helpers/clients/caller.ts';
import { becomes, eventually } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { journey } from '../journey.ts';
import { isServed, type McpNode, startNode } from '../mcp-nodes.ts';
import { startRoundRobin } from './round-robin.ts';

const { test, onPostgresql, before, opened, database } = await journey(
  'journey: sessions of a drained node',
  { timeoutMs: 180_000 },
);
const IDS = ['a', 'b', 'c'] as const;
let nodes: Record<(typeof IDS)[number], McpNode>;
let headers: Readonly<Record<string, string>>;

before(async () => {
  nodes = { a: await start('a'), b: await start('b'), c: await start('c') };
  ({ headers } = await newKey(nodes.a.admin, 'clients'));
  const backend = await startEverything({ era: 'legacy' });
  opened.push(() => backend.close());
  await register(nodes.a.admin, 'far', [{ id: 'one', endpoint: backend.url }]);
  // A session with subscriptions has a conversation of its own.
  const failover = { session_failover: 'always' };
  const { status } = await nodes.a.admin('PATCH /gateway/templates/far', failover);
  assert.is(status, 200);
  for (const node of Object.values(nodes))
    await isServed(node, '/mcp/far', { capabilities: {}, headers } as never);
});

onPostgresql(
  'no call fails, streams are opened again elsewhere, and the drained node serves nothing of them',
  async () => {
    const { a, b } = nodes;
    await becomes(() => states(a), ['a live', 'b live', 'c live']);
    const clients = await Promise.all(
      ['/mcp/far', '/mcp', '/mcp/far', '/mcp'].map((path) => connected(a, path)),
    );
    assert.equal(await places(), ['a', 'a', 'a', 'a']);
    let isOver = false;
    const calling = Promise.all(
      clients.map(async (each) => {
        while (!isOver) await each.call();
      }),
    );
    assert.is((await b.admin('POST /gateway/nodes/a/drain')).status, 200);
    await becomes(async () => {
      const present = await places();
      return present.length === 4 && !present.includes('a');
    }, true);
    isOver = true;
    await calling;
    for (const { updated, client, prefix } of clients) {
      updated.splice(0);
      const tool = `${prefix}test_trigger_resource_update`;
      const trigger = () => client.callTool({ name: tool, arguments: {} });
      await eventually(trigger, () => updated.includes(WATCHED_URI));
    }
    const id = String(clients[0]?.sessionId());
    // First: a client would open the stream again that ends with its session.
    for (const { client } of clients) await client.close();
    // Also at a balancer that sends everything to the drained node.
    const { status } = await fetch(new URL('/mcp/far', a.url), {
      method: 'DELETE',
      headers: { ...headers, 'mcp-session-id': id },
    });
    assert.is(status, 200);
    await becomes(async () => (await places()).length, 3);
  },
);

test.run();

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}

/** A client whose session is opened at this node, and whose further requests go to the nodes in turn. */
async function connected(first: McpNode, path: string) {
  const all = IDS.map((id) => nodes[id].url);
  const balancer = await startRoundRobin([first.url, ...all.filter((url) => url !== first.url)]);
  opened.unshift(balancer.close);
  const client = new Client({ name: 'spec', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(path, balancer.url), {
    requestInit: { headers },
    reconnectionOptions: {
      ...{ maxRetries: 100, initialReconnectionDelay: 100 },
      ...{ maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1.1 },
    },
  });
  await client.connect(transport);
  const updated: string[] = [];
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ params }) => void updated.push(params.uri),
  );
  await client.subscribeResource({ uri: WATCHED_URI });
  const prefix = path === '/mcp' ? 'far__' : '';
  const call = () => client.callTool({ name: `${prefix}test_simple_text`, arguments: {} });
  return { client, prefix, updated, call, sessionId: () => transport.sessionId };
}

/** The node of each session. */
async function places(): Promise<readonly string[]> {
  const { sessions } = Object((await nodes.b.admin('GET /gateway/sessions')).body);
  return sessions.map(({ node }: { node: string }) => node);
}

async function states(node: McpNode): Promise<readonly string[]> {
  const { nodes } = Object((await node.admin('GET /gateway/nodes')).body);
  return nodes.map(({ id, state }: { id: string; state: string }) => `${id} ${state}`).sort();
}
