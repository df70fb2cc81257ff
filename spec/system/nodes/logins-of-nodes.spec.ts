// Failed logins at three complete gateways on one PostgreSQL: the limit is that of the deployment. The rule:
// spec/auth/accounts/logins-of-nodes.spec.ts.

import * as assert from 'uvu/assert';
import { caller } from '../../helpers/clients/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, opened, database } = await journey('failed logins at several nodes', {
  timeoutMs: 300_000,
});
/** Of one user from one address. */
const LIMIT = 10;
const MINUTE_MS = 60_000;

let users = 0;

onPostgresql('ten failures in a minute are admitted at all nodes together, one of them silent', async () => {
  const nodes = [await start('a'), await start('b'), await start('c')] as const;
  for (const { admin } of nodes)
    await becomes(
      async () => JSON.stringify((await admin('GET /gateway/nodes')).body).split('"state":"live"').length - 1,
      3,
      heardWithinMs,
    );
  const [a, b, c] = nodes;
  await becomes(() => admitted('ada', [a, b, c]), LIMIT, MINUTE_MS);
  // It is stopped, but a member: the others admit their shares of the limit.
  c.program.signal('SIGSTOP');
  const atTwo = await admitted('joe', [a, b]);
  c.program.signal('SIGCONT');
  assert.ok(atTwo >= 2 * Math.floor(LIMIT / 3), `${atTwo}`);
});

test.run();

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}

/**
 * How many failures of one user are admitted at these nodes in turn within a minute: never more than the limit. Fewer where a node does not
 * answer in time, on a machine under load.
 */
async function admitted(username: string, nodes: readonly McpNode[]): Promise<number> {
  users += 1;
  const body = { username: `${username}-${users}`, password: 'wrong' };
  const startMs = performance.now();
  let count = 0;
  for (let attempt = 0; attempt < LIMIT * 1.5; attempt += 1) {
    const { status } = await caller(nodes[attempt % nodes.length]?.url ?? '')('POST /auth/login', body);
    assert.ok([401, 429].includes(status), `${status}`);
    // Later the next minute may have begun.
    if (status === 401 && performance.now() - startMs < MINUTE_MS) count += 1;
  }
  assert.ok(count <= LIMIT, `${count}`);
  return count;
}
