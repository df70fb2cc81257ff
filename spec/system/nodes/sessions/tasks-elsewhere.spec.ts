// Tasks that began at one node, asked about at another: two real gateways on one PostgreSQL. On one node: gateway/mcp/tasks.spec.ts.

import * as assert from 'uvu/assert';
import { startTaskServer, type TaskServer } from '../../../fixtures/task-server.ts';
import { newKey } from '../../../helpers/clients/caller.ts';
import { LegacyClient } from '../../../helpers/clients/mcp-client.ts';
import { becomes, eventually } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { journey } from '../journey.ts';
import {
  askOnce,
  heardWithinMs,
  isServed,
  type McpNode,
  refusalOf,
  startNode,
  startPair,
} from '../mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('tasks of other nodes', {
  timeoutMs: 120_000,
});

const UNKNOWN = [200, -32602];
const extensions = { 'io.modelcontextprotocol/tasks': {} };
let { a, b, options } = {} as Awaited<ReturnType<typeof startPair>>; // before the first test
/** By the id of the instance. */
const servers = new Map<string, TaskServer>();

before(async () => {
  ({ a, b, options } = await startPair(database, opened));
  for (const id of ['one', 'two', 'three', 'four']) {
    const backend = await startTaskServer();
    servers.set(id, backend);
    opened.push(() => backend.close());
    await register(a.admin, 'jobs', [{ id, endpoint: backend.url }]);
  }
  for (const node of [a, b]) await isReady(node);
});

for (const [path, name] of [
  ['/mcp/jobs', 'begin'],
  ['/mcp', 'jobs__begin'],
] as const)
  onPostgresql(`a task that began at another node at ${path} is found there, by its owner only`, async () => {
    const { headers } = await newKey(a.admin, `others of ${path}`);
    for (const [here, there] of [
      [a, b],
      [b, a],
    ] as const) {
      // More tasks than instances: luck with the choice of an instance finds no more than some of them.
      for (let count = 0; count < 6; count += 1) {
        const { taskId, instanceId } = await begin(here, path, name);
        const first = await askOnce(there, path, options, 'tasks/get', { taskId });
        assert.equal([first.result.taskId, first.instanceId], [taskId, instanceId]);
        const foreign = await askOnce(there, path, { ...options, headers }, 'tasks/cancel', { taskId });
        assert.equal(refusalOf(foreign).slice(0, 2), UNKNOWN);
        assert.equal(asked(taskId), ['tasks/get'], 'the instance is not asked for another owner');
        // Remembered: also while the node at which it began does not answer.
        const again = await askOnce(there, path, options, 'tasks/update', { taskId });
        assert.equal([again.result.taskId, again.instanceId], [taskId, instanceId]);
      }
    }
  });

onPostgresql('a session finds the tasks of its owner that began at another node', async () => {
  const client = await LegacyClient.open(b.wire, '/mcp/jobs', {
    ...options,
    capabilities: { extensions },
  });
  for (let count = 0; count < 6; count += 1) {
    const { taskId, instanceId } = await begin(a, '/mcp/jobs', 'begin');
    const { result, error } = await client.ask('tasks/get', { taskId });
    assert.equal([error, Object(result).taskId], [undefined, taskId], instanceId);
    assert.equal(asked(taskId), ['tasks/get']);
  }
});

onPostgresql('a task whose node and instance are gone is refused with -32602', async () => {
  const doomed = await startNode(database);
  opened.unshift(doomed.remove);
  await isReady(doomed);
  const { taskId, instanceId = '' } = await begin(doomed, '/mcp/jobs', 'begin');
  const found = await askOnce(a, '/mcp/jobs', options, 'tasks/get', { taskId });
  assert.is(found.result.taskId, taskId);
  doomed.program.signal('SIGKILL');
  await doomed.program.end();
  // Remembered here; not at the other node, which asks.
  const kept = await askOnce(a, '/mcp/jobs', options, 'tasks/get', { taskId });
  assert.is(kept.result.taskId, taskId);
  const removed = await a.admin(`DELETE /gateway/deregister/jobs/${instanceId}`);
  assert.is(removed.status, 204);
  for (const node of [a, b]) {
    const lost = async () => refusalOf(await askOnce(node, '/mcp/jobs', options, 'tasks/get', { taskId }));
    await becomes(async () => (await lost()).slice(0, 2), UNKNOWN, heardWithinMs);
  }
});

test.run();

/** The methods about this task that reached any instance. */
function asked(taskId: string): string[] {
  return [...servers.values()].flatMap((each) =>
    each.asked.filter((text) => text.endsWith(taskId)).map((text) => text.split(' ')[0] ?? ''),
  );
}

async function begin(node: Pick<McpNode, 'wire'>, path: string, name: string) {
  const { result, instanceId } = await askOnce(node, path, options, 'tools/call', { name, arguments: {} });
  assert.is(typeof result.taskId, 'string', JSON.stringify(result));
  return { taskId: String(result.taskId), instanceId };
}

/** It serves all instances, and knows the other nodes. */
async function isReady(node: McpNode): Promise<void> {
  await isServed(node, '/mcp/jobs', options);
  const healthy = async () => {
    const { body } = await node.admin('GET /servers');
    return Array.isArray(body) ? body.filter(({ status }) => status === 'healthy').length : body;
  };
  await becomes(healthy, 4, heardWithinMs);
  const members = async () => {
    const { body } = await node.admin('GET /gateway/nodes');
    return Object(body).nodes?.filter(({ state }: { state: string }) => state === 'live').length;
  };
  assert.ok((await eventually(members, (count) => count >= 2, heardWithinMs)) >= 2);
}
