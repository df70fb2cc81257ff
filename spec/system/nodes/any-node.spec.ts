// Programs that any node may run: real gateway processes on one PostgreSQL, and programs as real processes.

import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { toolText } from '../../helpers/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { isRunning } from '../../helpers/processes.ts';
import { type FreshDatabase, freshDatabase, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

const server = await postgresql();
const test = suite('journey: programs of any node', { timeoutMs: 180_000 });
const onPostgresql = test.needs(server.url, server.skip);
/** Its own start, on a machine under load. */
const START_MS = 5_000;
let database: FreshDatabase;
const opened: (() => unknown)[] = [];

test.before.each(async () => {
  if (server.url !== undefined) database = await freshDatabase(server);
});
test.after.each(async () => {
  for (const close of opened.splice(0)) await close();
  if (server.url !== undefined) await database.drop();
});

onPostgresql('a program moves from a drained node, and from a killed one within 15 s', async () => {
  const nodes = [await start('a'), await start('b')];
  const [first] = nodes as [McpNode];
  const instance = { id: 'one', command: process.execPath, args: [stdioServerPath], node: 'any' };
  const made = await first.admin('POST /gateway/register?wait=15', { template_name: 'near', instance });
  assert.is(made.status, 201, JSON.stringify(made.body));
  const pid = await pidAt(first);
  const [holder, other] = apart(nodes, pid);
  // The other one uses it from there.
  await becomes(async () => (await callAt(other)).status, 200, heardWithinMs);
  assert.is(await pidAt(other), pid);

  const servesAnew = (node: McpNode, before: number) => async () => {
    const { status, body } = await callAt(node);
    return status === 200 && Number(toolText({ body } as never)) !== before;
  };
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
  assert.ok(servedMs < 15_000 + START_MS, `it served after ${servedMs} ms`);
  assert.not(isRunning(second));
});
test.run();

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}

/** The node of this process, and the other one. */
function apart(nodes: readonly McpNode[], pid: number): [McpNode, McpNode] {
  const holder = nodes.find(({ program }) => program.descendants().includes(pid));
  const other = nodes.find((node) => node !== holder);
  assert.ok(holder && other, `no node runs ${pid}`);
  return [holder as McpNode, other as McpNode];
}

function callAt({ admin }: McpNode) {
  return admin('POST /mcp/near/tools/call', { name: 'pid' });
}

async function pidAt(node: McpNode): Promise<number> {
  return Number(toolText(await callAt(node)));
}
