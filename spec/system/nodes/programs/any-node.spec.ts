// Programs that any node may run: real gateway processes on one PostgreSQL, and programs as real processes.

import { writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { runCommand } from '../../../cli/commands/against-gateway.ts';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import { caller, field, listed, newKey, toolText } from '../../../helpers/clients/caller.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { register, startHarness } from '../../../helpers/programs/mcp-program.ts';
import { isRunning } from '../../../helpers/programs/processes.ts';
import { journey } from '../journey.ts';
import { heardWithinMs, type McpNode, nodeEnv, startNode } from '../mcp-nodes.ts';
import { apart, callAt, pidAt, registerAny, sample, servesAnew } from './any-programs.ts';

const { test, onPostgresql, opened, close, database } = await journey('journey: programs of any node', {
  timeoutMs: 180_000,
  isForEach: true,
});
/** The time of a killed node, and its own start on a machine under load. */
const TAKEN_MS = 15_000;
const START_MS = 5_000;
/** A program that ends at once is stopped, and its lease released and read by the other node. */
const RELEASED_MS = 4_000;
/** A start waits 5 s for its programs, and 6 s for those of its killed process. */
const READY_MS = 15_000;
/** A node that joins others takes no program for 15 s. */
const JOINED_MS = 30_000;
const folder = folderOfEach(test);

test.after.each(close);

onPostgresql('its calls count once, and commands reach it from each node', async () => {
  const nodes = [await start('a'), await start('b')];
  const [first] = nodes as [McpNode];
  await registerAny(first);
  const [, other] = apart(nodes, await pidAt(first));
  await becomes(async () => (await callAt(other)).status, 200, heardWithinMs);
  const carried = other.admin('POST /mcp/near/tools/call', { name: 'count', arguments: { ms: 3_000 } });
  for (const { admin } of nodes)
    await becomes(async () => Object((await admin('GET /gateway/stats')).body).active_connections, 1, 2_500);
  assert.is((await carried).status, 200);
  for (const { admin } of nodes) {
    for (const command of ['drain', 'resume'])
      assert.is((await admin(`POST /gateway/instances/near/one/${command}`)).status, 200, command);
    await becomes(async () => (await callAt(other)).status, 200, heardWithinMs);
  }
});

onPostgresql(
  'a program moves from a drained node, and from a killed one within 15 s and its own start',
  async () => {
    const nodes = [await start('a'), await start('b')];
    const [first] = nodes as [McpNode];
    await registerAny(first);
    const pid = await pidAt(first);
    const [holder, other] = apart(nodes, pid);
    // The other one uses it from there.
    await becomes(async () => (await callAt(other)).status, 200, heardWithinMs);
    assert.is(await pidAt(other), pid);

    const id = holder === first ? 'a' : 'b';
    assert.is((await other.admin(`POST /gateway/nodes/${id}/drain`)).status, 200);
    await becomes(servesAnew(other, pid), true, 20_000);
    assert.not(isRunning(pid), 'stopped before the start at the other node');
    assert.equal(holder.program.descendants(), []);
    assert.is((await other.admin(`POST /gateway/nodes/${id}/resume`)).status, 200);

    const second = await pidAt(other);
    const killedAtMs = performance.now();
    other.program.signal('SIGKILL');
    await becomes(servesAnew(holder, second), true, 25_000);
    const servedMs = performance.now() - killedAtMs;
    assert.ok(servedMs < TAKEN_MS + START_MS, `it served after ${servedMs} ms`);
    assert.not(isRunning(second));
  },
);
onPostgresql('a node that stops gives its program up while its other calls finish', async () => {
  const nodes = [await start('a'), await start('b')];
  const [first] = nodes as [McpNode];
  const mark = await registerAny(first);
  const pid = await pidAt(first);
  const [holder, other] = apart(nodes, pid);
  await becomes(servesAnew(other, 0), true, heardWithinMs);
  const own = { id: 'one', node: holder.id, command: process.execPath, args: [stdioServerPath] };
  await register(holder.admin, 'own', [own]);
  const slow = holder.admin('POST /mcp/own/tools/call', { name: 'sleep', arguments: { ms: 12_000 } });
  await becomes(async () => field(await holder.admin('GET /gateway/stats'), 'active_connections'), 1);

  const samples = sample(mark);
  opened.unshift(samples.end);
  const stoppedAtMs = performance.now();
  holder.program.signal('SIGTERM');
  await becomes(servesAnew(other, pid), true, 25_000);
  const servedMs = performance.now() - stoppedAtMs;
  assert.ok(servedMs < RELEASED_MS + START_MS, `it served after ${servedMs} ms`);
  assert.is((await slow).status, 200);
  assert.equal(await holder.program.end(), { code: 0, signal: null });
  const { groups, most } = samples.end();
  assert.equal([groups.length, most], [2, 1]);
});

for (const isKept of [true, false])
  onPostgresql(
    `a node that is killed and started again at once, ${isKept ? 'with its' : 'with another'} state folder: its program runs once`,
    async () => {
      const nodes = [await start('a', folder('a')), await start('b', folder('b'))];
      const [first] = nodes as [McpNode];
      const mark = await registerAny(first, '--ignore-stdin-end', '--ignore-sigterm');
      const pid = await pidAt(first);
      const [holder, other] = apart(nodes, pid);
      await becomes(servesAnew(other, 0), true, heardWithinMs);

      const samples = sample(mark);
      opened.unshift(samples.end);
      const killedAtMs = performance.now();
      holder.program.signal('SIGKILL');
      await holder.program.end();
      const id = holder === first ? 'a' : 'b';
      const env = { GATEWAY_STATE_DIR: folder(isKept ? id : 'new') };
      const again = await startNode(database, { id, port: holder.port, env });
      opened.unshift(again.remove);
      await becomes(servesAnew(other, pid), true, 30_000);
      const servedMs = performance.now() - killedAtMs;
      assert.ok(servedMs < TAKEN_MS + START_MS, `it served after ${servedMs} ms`);
      await becomes(servesAnew(again, pid), true, heardWithinMs);
      assert.is(await pidAt(again), await pidAt(other));
      const { groups, most } = samples.end();
      assert.equal([groups.length, most], [2, 1]);
    },
  );

onPostgresql(
  'a node without others: its programs serve when it is ready, after a stop and after a kill',
  async () => {
    const env = { ...nodeEnv(database), GATEWAY_NODE_ID: 'a', GATEWAY_STATE_DIR: folder('a') };
    const first = await start('a', folder('a'));
    await registerAny(first);
    const { headers } = await newKey(first.admin, 'calls');
    const { port } = first;
    let running: Pick<McpNode, 'program' | 'url'> = first;
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      running.program.signal(signal);
      await running.program.end();
      const again = await startHarness({ port, env });
      opened.unshift(again.remove);
      running = again;
      const client = caller(again.url, headers);
      await becomes(async () => (await client('GET /readyz')).status, 200, READY_MS);
      const { status, body } = await client('POST /mcp/near/tools/call', { name: 'pid' });
      assert.is(status, 200, `after ${signal}: ${JSON.stringify(body)}`);
    }
  },
);

onPostgresql(
  'cluster.programs off: new programs belong to their node, and those of any node are used where others run them',
  async () => {
    const off = await startNode(database, { id: 'a', env: { GATEWAY_CLUSTER_PROGRAMS: 'false' } });
    opened.unshift(off.remove);
    const program = { command: process.execPath, args: [stdioServerPath] };
    await register(off.admin, 'own', [{ id: 'own', ...program }]);
    const ownPid = Number(toolText(await off.admin('POST /mcp/own/tools/call', { name: 'pid' })));
    const shared = { template_name: 'near', instance: { id: 'one', node: 'any', ...program } };
    assert.is((await off.admin('POST /gateway/register', shared)).status, 201);
    assert.equal(off.program.descendants(), [ownPid]);
    assert.equal((await listed(off.admin))['own/own']?.node_id, 'a');
    // Nobody might run an imported one either.
    await writeFile(folder('mcp.json'), JSON.stringify({ mcpServers: { imported: { command: 'true' } } }));
    const env = { ...nodeEnv(database), GATEWAY_NODE_ID: 'b', GATEWAY_CLUSTER_PROGRAMS: 'false' };
    const { out } = await runCommand(['db', 'import', 'mcp.json'], env, folder());
    assert.match(out, 'b runs the programs');
    await becomes(async () => (await listed(off.admin))['imported/imported']?.node_id, 'b', heardWithinMs);
    const on = await start('b');
    await becomes(async () => (await callAt(on)).status, 200, JOINED_MS);
    await becomes(async () => (await callAt(off)).status, 200, heardWithinMs);
    assert.is(await pidAt(off), await pidAt(on));
    assert.equal(off.program.descendants(), [ownPid]);
    assert.ok(on.program.descendants().includes(await pidAt(on)));
  },
);

test.run();

async function start(id: string, stateFolder = ''): Promise<McpNode> {
  const node = await startNode(database, { id, env: { GATEWAY_STATE_DIR: stateFolder } });
  opened.unshift(node.remove);
  return node;
}
