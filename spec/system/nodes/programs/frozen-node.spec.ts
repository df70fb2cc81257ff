// A node that is frozen, as by SIGSTOP: its program of any node is gone before another node starts it, whatever the program ignores. Real
// gateway processes on one PostgreSQL; the process groups of the program are sampled all the time. Calls that were under
// way in its sessions are not sent again.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { listed, newKey } from '../../../helpers/clients/caller.ts';
import { LegacyClient } from '../../../helpers/clients/mcp-client.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { isRunning } from '../../../helpers/programs/processes.ts';
import { journey } from '../journey.ts';
import { capabilities, heardWithinMs, isServed, type McpNode, startNode } from '../mcp-nodes.ts';
import { apart, pidAt, registerAny, sample, servesAnew } from './any-programs.ts';

const { test, onPostgresql, opened, database } = await journey('journey: a frozen node', {
  timeoutMs: 180_000,
  isForEach: true,
});
/** A heartbeat is missed for 10 s; then the other node takes the program. */
const TAKEN_MS = 15_000;
/** Start of the program, on a machine under load. */
const START_MS = 5_000;

onPostgresql(
  'its program never runs twice, and serves at the other node within 15 s and its own start',
  async () => {
    // It ignores all but SIGKILL.
    const nodes = [await start('a'), await start('b')] as const;
    const mark = await registerAny(nodes[0], '--ignore-stdin-end', '--ignore-sigterm');
    const pid = await pidAt(nodes[0]);
    const [holder, other] = apart(nodes, pid);
    await becomes(servesAnew(other, 0), true, heardWithinMs);

    const samples = sample(mark);
    opened.unshift(samples.end);
    holder.program.signal('SIGSTOP');
    const frozenAtMs = performance.now();
    await becomes(servesAnew(other, pid), true, TAKEN_MS + START_MS + 5_000);
    const servedMs = performance.now() - frozenAtMs;
    assert.ok(servedMs < TAKEN_MS + START_MS, `it served after ${servedMs} ms`);
    assert.not(isRunning(pid));
    const second = await pidAt(other);
    // Frozen for longer than that, then awake.
    await becomes(() => performance.now() - frozenAtMs >= 15_000, true);
    holder.program.signal('SIGCONT');
    const shown = async () => (await listed(holder.admin))['near/one'];
    const use = async () => [await pidAt(holder), (await shown())?.state];
    await becomes(() => use().catch(() => undefined), [second, 'healthy'], heardWithinMs * 2);
    // All that it decided before it was frozen has been carried out or dropped by now.
    const settledAtMs = performance.now();
    await becomes(() => performance.now() - settledAtMs >= 3_000, true);
    const { groups, most, count } = samples.end();
    assert.equal([groups, most], [[pid, second], 1], `of ${count} samples`);
    assert.ok(count > 300, `${count} samples`);
    assert.equal(holder.program.descendants(), []);
  },
);

onPostgresql(
  'a call that its backend refused meanwhile is not sent again after another node has taken the session',
  async () => {
    const [holder, other] = [await start('c'), await start('d')];
    const { headers } = await newKey(holder.admin, 'clients');
    const options = { capabilities, headers };
    const backend = await startCounting();
    opened.push(backend.close);
    await register(holder.admin, 'counted', [{ id: 'one', endpoint: backend.url }], {
      session_failover: 'always',
    });
    for (const node of [holder, other]) await isServed(node, '/mcp/counted', options);
    const client = await LegacyClient.open(holder.wire, '/mcp/counted', options);
    void client.call('count', { by: 'held' }).catch(() => undefined);
    await becomes(() => backend.isHeld(), true);

    holder.program.signal('SIGSTOP');
    backend.forget();
    const body = JSON.stringify({
      ...{ jsonrpc: '2.0', id: 'other', method: 'tools/call' },
      params: { name: 'count', arguments: { by: 'other' } },
    });
    const answers = async () =>
      (await other.wire.exchange('/mcp/counted', { headers: client.headers, body })).status;
    await becomes(answers, 200, 30_000);
    const executed = [...backend.executed];
    assert.not(executed.includes('held'));
    holder.program.signal('SIGCONT');
    const wokeAtMs = performance.now();
    await becomes(() => performance.now() - wokeAtMs >= 5_000, true, 8_000);
    assert.equal(backend.executed, executed);
  },
);

test.run();

/** A server whose first call waits until the server forgets its sessions: it refuses that call, and carries out all others. */
async function startCounting() {
  const executed: string[] = [];
  const sessions = new Set<string>();
  let held: ServerResponse | undefined;
  let hasHeld = false;
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params } = Object(await json(request));
    const session = String(request.headers['mcp-session-id'] ?? '');
    const isKnown = method === 'initialize' || method === 'ping' || sessions.has(session);
    if (!isKnown) return void response.writeHead(404).end();
    if (id === undefined) return void response.writeHead(202).end();
    const answer = (result: object, fields = {}): void => {
      response.writeHead(200, { 'content-type': 'application/json', ...fields });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    };
    if (method === 'initialize') {
      const opened = randomUUID();
      sessions.add(opened);
      const greeting = { protocolVersion: '2025-11-25', serverInfo: { name: 's', version: '1' } };
      answer({ ...greeting, capabilities: { tools: {} } }, { 'mcp-session-id': opened });
    } else if (method === 'tools/list') {
      answer({ tools: [{ name: 'count', inputSchema: { type: 'object' } }] });
    } else if (method === 'tools/call' && !hasHeld) {
      hasHeld = true;
      held = response;
    } else {
      if (method === 'tools/call') executed.push(String(params?.arguments?.by));
      answer(method === 'tools/call' ? { content: [{ type: 'text', text: 'counted' }] } : {});
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${Object(server.address()).port}/mcp`,
    executed,
    isHeld: () => held !== undefined,
    forget: () => {
      sessions.clear();
      held?.writeHead(404).end();
    },
    close: () => server.close().closeAllConnections(),
  };
}

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}
