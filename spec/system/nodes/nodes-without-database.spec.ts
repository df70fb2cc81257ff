// The database does not answer for a minute: callers that are known are served at every node, the program of any node goes on, and no life
// ends. Real gateways, each with its own way to one PostgreSQL.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Caller, caller, newKey } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type ServerLine, serverLine } from '../../helpers/network/server-line.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';
import { apart, callAt, pidAt, registerAny, sample, servesAnew } from './programs/any-programs.ts';

const { test, onPostgresql, opened, database } = await journey('journey: nodes without their database', {
  timeoutMs: 300_000,
  isForEach: true,
});
/** Longer than each time of the rules: a lease 7 s, an expiry 10 to 14 s, a joining node 15 s. 60 s were seen, too. */
const AWAY_MS = 30_000;
/** In which a life would end that others take for gone. */
const AFTER_MS = 15_000;
/** The lease of a node that is cut off alone, and the time of the reaper. */
const LEASE_MS = 7_000;

for (const how of ['it refuses connections', 'nothing passes any more'] as const)
  onPostgresql(`${how} for 30 s: no call fails, no program stops, no life ends`, async () => {
    const nodes = [await start('a'), await start('b'), await start('c')];
    const [first] = nodes as [Started, ...Started[]];
    const mark = await registerAny(first.node);
    const pid = await pidAt(first.node);
    const { headers } = await newKey(first.node.admin, 'known');
    const clients = nodes.map(({ node }) => caller(node.url, headers));
    // Each of them knows the key from now on.
    for (const client of clients) await becomes(async () => (await pidOf(client)).status, 200, heardWithinMs);
    const before = await livesAt(first.node);
    assert.is(before.length, 3);

    const samples = sample(mark);
    opened.unshift(samples.end);
    if (how === 'nothing passes any more') for (const { line } of nodes) line.silence();
    else await Promise.all(nodes.map(({ line }) => line.cut()));
    const until = performance.now() + AWAY_MS;
    let calls = 0;
    while (performance.now() < until) {
      for (const client of clients) {
        const { status, body } = await pidOf(client);
        assert.is(status, 200, `call ${calls}: ${JSON.stringify(body)}`);
        calls += 1;
      }
      await delay(100);
    }
    assert.ok(calls > 50, `${calls} calls`);
    for (const { line } of nodes) await line.mend();
    await delay(AFTER_MS);

    const { groups, most } = samples.end();
    assert.equal([groups, most], [[pid], 1]);
    for (const { node } of nodes) {
      await becomes(() => livesAt(node), before, heardWithinMs);
      assert.is(await pidAt(node), pid);
    }
  });

onPostgresql(
  'a node that alone is cut off from it loses its program within a lease, to another node',
  async () => {
    const nodes = [await start('a'), await start('b')];
    const [first, second] = nodes as [Started, Started];
    const mark = await registerAny(first.node, '--ignore-stdin-end', '--ignore-sigterm');
    const pid = await pidAt(first.node);
    const [holder, other] = apart([first.node, second.node], pid);
    await becomes(servesAnew(other, 0), true, heardWithinMs);
    const samples = sample(mark);
    opened.unshift(samples.end);
    const lost = holder === first.node ? first : second;
    lost.line.silence();
    await becomes(() => isRunning(pid), false, LEASE_MS * 2);
    await becomes(servesAnew(other, pid), true, 30_000);
    await lost.line.mend();
    await becomes(async () => (await callAt(holder)).status, 200, 30_000);
    const { groups, most } = samples.end();
    assert.equal([groups.length, most], [2, 1]);
  },
);

test.run();

interface Started {
  readonly node: McpNode;
  readonly line: ServerLine;
}

async function start(id: string): Promise<Started> {
  const line = await serverLine(database.url);
  opened.unshift(() => line.close());
  const node = await startNode({ url: line.url }, { id });
  opened.unshift(node.remove);
  return { node, line };
}

function pidOf(client: Caller) {
  return client('POST /mcp/near/tools/call', { name: 'pid' });
}

/** The lives that go on, as this node sees them. */
async function livesAt({ admin }: McpNode): Promise<string[]> {
  const { nodes } = Object((await admin('GET /gateway/nodes')).body);
  const live = (nodes as readonly { readonly life: string; readonly state: string }[]).filter(
    ({ state }) => state !== 'ended',
  );
  return live.map(({ life }) => life).sort();
}
