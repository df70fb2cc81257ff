// Rate limits of two complete gateways on one PostgreSQL, without Redis: a key may make about as many requests as its limit, at one of them
// or at both. With Redis: shared-limits.spec.ts.

import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { type Caller, caller, newKey } from '../../helpers/clients/caller.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { startGuarded } from '../../helpers/programs/mcp-program.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, nodeEnv } from './mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('limits of several nodes', {
  timeoutMs: 120_000,
});
const LIMIT = 200;
let nodes: readonly Pick<McpNode, 'url' | 'admin'>[];

before(async () => {
  nodes = [await start('a'), await start('b')];
  for (const { admin } of nodes) await becomes(async () => liveNodes(admin), 2, heardWithinMs);
});

for (const [where, share] of [
  ['at one node', () => 0],
  ['in turn at both', (request: number) => request % 2],
  ['mostly at one', (request: number) => (request % 10 === 0 ? 0 : 1)],
] as const)
  onPostgresql(`a limit admits as many requests ${where}`, async () => {
    const callers = await keyOnAll(where);
    let admitted = 0;
    for (let request = 0; request < LIMIT * 1.4; request += 1) {
      const answer = await callers[share(request)]?.('GET /gateway/templates');
      if (answer?.status === 200) admitted += 1;
      else assert.is(answer?.status, 429);
    }
    assert.ok(admitted >= LIMIT * 0.85 && admitted <= LIMIT * 1.15, `${admitted} of ${LIMIT}`);
  });

onPostgresql('a request that another node answers counts once', async () => {
  const [first, second] = nodes;
  assert.ok(first && second);
  const backend = await startHttpServer();
  opened.push(() => backend.close());
  const instance = { id: 'shared-1', endpoint: backend.url };
  const registered = await first.admin('POST /gateway/register?wait=10', {
    template_name: 'shared',
    instance,
  });
  assert.is(registered.status, 201);
  const isKnown = async () => (await second.admin('GET /mcp/shared/health')).status === 200;
  await eventually(isKnown, Boolean, heardWithinMs);
  const { headers } = await newKey(first.admin, 'forwarded');
  const send = (url: string, method: string, params: object, session: Record<string, string> = {}) =>
    fetch(`${url}/mcp/shared`, {
      method: 'POST',
      headers: {
        ...{ ...headers, ...session, 'content-type': 'application/json' },
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const opening = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  };
  const session = await eventually(
    async () => (await send(first.url, 'initialize', opening)).headers.get('mcp-session-id'),
    (id) => id !== null,
    heardWithinMs,
  );
  let admitted = 0;
  for (let request = 0; request < LIMIT * 1.4; request += 1) {
    const answer = await send(second.url, 'ping', {}, { 'mcp-session-id': session ?? '' });
    await answer.text();
    if (answer.status === 200) admitted += 1;
  }
  assert.ok(admitted >= LIMIT * 0.85, `${admitted} of ${LIMIT}`);
});

test.run();

async function start(id: string): Promise<Pick<McpNode, 'url' | 'admin'>> {
  const env = { ...nodeEnv(database), GATEWAY_NODE_ID: id, GATEWAY_API_KEY_LIMIT: String(LIMIT) };
  const node = await startGuarded({ env });
  opened.unshift(node.remove);
  return node;
}

async function liveNodes(admin: Caller): Promise<number> {
  const { body } = await admin('GET /gateway/nodes');
  return JSON.stringify(body).split('"state":"live"').length - 1;
}

async function keyOnAll(name: string): Promise<readonly Caller[]> {
  const [first] = nodes;
  assert.ok(first);
  const { headers } = await newKey(first.admin, name);
  return nodes.map(({ url }) => caller(url, headers));
}
