// The switches for the day on which nodes that help each other misbehave: two complete gateways on one PostgreSQL, which then behave as before
// there were other nodes. `cluster.programs` is in any-node.spec.ts, and `cluster.recover` of a node alone in journeys/restart.spec.ts.

import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { objectOr } from '../../fixtures/wire.ts';
import { listed, newKey, statusAndCode } from '../../helpers/clients/caller.ts';
import { LegacyClient, requestText, textOf } from '../../helpers/clients/mcp-client.ts';
import { becomes, untilStatus } from '../../helpers/eventually.ts';
import { register } from '../../helpers/programs/mcp-program.ts';
import { type FreshDatabase, freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';
import { heardWithinMs, isServed, type McpNode, startNode } from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('nodes that do not help each other', { timeoutMs: 120_000 });
const onPostgresql = test.needs(server.url, server.skip);
const opened: (() => unknown)[] = [];
let endpoint = '';

test.before(async () => {
  const backend = await startHttpServer();
  opened.push(() => backend.close());
  endpoint = backend.url;
});
test.after(async () => {
  for (const close of opened) await close();
});

onPostgresql('cluster.forward off: sessions and programs are those of the node that is asked', async () => {
  const { a, b, headers } = await pair({ GATEWAY_CLUSTER_FORWARD: 'false' });
  const program = { id: 'program', node: 'a', command: process.execPath, args: [stdioServerPath] };
  const made = await a.admin('POST /gateway/register?wait=30', { template_name: 'near', instance: program });
  assert.is(made.status, 201);
  await becomes(async () => (await listed(b.admin))['near/program']?.state, 'stopped', heardWithinMs);
  const call = await b.admin('POST /mcp/near/tools/call', { name: 'pid' });
  assert.equal(statusAndCode(call), [503, 'NO_HEALTHY_INSTANCE']);
  assert.is(await statusOfInitialize(b, '/mcp/near', headers), 503);
  const session = await LegacyClient.open(a.wire, '/mcp/shared', { headers });
  assert.is(await statusAt(b, session), 404);
  assert.is(textOf(await session.call('name')).length > 0, true);
  assert.is(await statusAt(a, session), 200);
  // Each counts for itself, and names the other one.
  const { sessions, partial } = objectOr((await b.admin('GET /gateway/stats')).body);
  assert.equal([objectOr(sessions).open, partial], [0, ['a']]);
  assert.equal(objectOr((await b.admin('GET /gateway/history')).body).partial, ['a']);
  const drained = await b.admin('POST /gateway/nodes/a/drain');
  assert.equal(statusAndCode(drained), [503, 'NODE_UNAVAILABLE']);
});

onPostgresql('cluster.recover off: sessions end with their node', async () => {
  const { a, b, headers } = await pair({ GATEWAY_CLUSTER_RECOVER: 'false' });
  const session = await LegacyClient.open(a.wire, '/mcp/shared', { headers });
  assert.is(await statusAt(b, session), 200);
  a.program.signal('SIGKILL');
  await becomes(() => statusAt(b, session), 404, heardWithinMs);
  const next = await LegacyClient.open(b.wire, '/mcp/shared', { headers });
  assert.is(await statusAt(b, next), 200);
});
test.run();

/** Two nodes with these settings, a template with an endpoint, and a client. */
async function pair(env: Readonly<Record<string, string>>) {
  const database: FreshDatabase = await freshDatabase({ url: String(server.url) });
  opened.push(database.drop);
  const start = async (id: string): Promise<McpNode> => {
    const node = await startNode(database, { id, env });
    opened.unshift(node.remove);
    return node;
  };
  const [a, b] = [await start('a'), await start('b')];
  await register(a.admin, 'shared', [{ id: 'shared-1', endpoint }]);
  const { headers } = await newKey(a.admin, 'clients');
  for (const node of [a, b]) {
    await isServed(node, '/mcp/shared', { headers });
    await untilStatus(200, () => node.admin('POST /mcp/shared/tools/call', { name: 'name' }), heardWithinMs);
  }
  await becomes(async () => Object((await b.admin('GET /gateway/nodes')).body).nodes.length, 2);
  return { a, b, headers };
}

async function statusAt({ wire }: McpNode, { headers }: LegacyClient): Promise<number> {
  const body = requestText(9, 'tools/list', {});
  return (await wire.exchange('/mcp/shared', { headers, body })).status;
}

async function statusOfInitialize(
  { wire }: McpNode,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  };
  const types = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
  const body = requestText(1, 'initialize', params);
  return (await wire.exchange(path, { headers: { ...types, ...headers }, body })).status;
}
