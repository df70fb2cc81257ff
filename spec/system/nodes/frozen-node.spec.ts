// A node that is frozen, as by SIGSTOP: its program of any node is gone before another node starts it, whatever the program ignores. Real
// gateway processes on one PostgreSQL; the process groups of the program are sampled all the time.

import * as assert from 'uvu/assert';
import { listed } from '../../helpers/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { isRunning } from '../../helpers/processes.ts';
import { apart, pidAt, registerAny, sample, servesAnew } from './any-programs.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

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

test.run();

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}
