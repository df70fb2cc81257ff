// Settings that all nodes need alike: two complete gateways on one PostgreSQL with different ones, which each of them names.

import * as assert from 'uvu/assert';
import { objectOr } from '../../fixtures/wire.ts';
import { becomes } from '../../helpers/eventually.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('settings of several nodes', {
  timeoutMs: 120_000,
});
let a: McpNode;
let b: McpNode;

before(async () => {
  a = await start('a', { GATEWAY_USER_LIMIT: '700', GATEWAY_LOG_LEVEL: 'debug' });
  b = await start('b', {
    GATEWAY_MAX_SESSIONS: '4321',
    GATEWAY_ALLOWED_COMMANDS: '[["uvx", "good-server"]]',
    GATEWAY_MAX_RETRIES: '7',
  });
});

/** One of each kind: defaults of failover, limits, the number of sessions, the commands that may be started. */
const AGREED = [
  'load_balancer.max_retries',
  'sessions.max',
  'rate_limits.user_per_hour',
  'stdio.allowed_commands',
] as const;
const namesOf = (id: string) =>
  AGREED.map((name) => `the setting ${name} of the node "${id}" is not that of this node`);

onPostgresql('differences are named by each node, and no value is', async () => {
  for (const [node, other] of [
    [a, 'b'],
    [b, 'a'],
  ] as const) {
    const listed = async () => objectOr((await node.admin('GET /gateway/nodes')).body);
    await becomes(async () => (await listed()).warnings, namesOf(other), heardWithinMs);
    const verbose = await (await fetch(`${node.url}/readyz?verbose`)).text();
    assert.equal(objectOr(JSON.parse(verbose)).warnings, namesOf(other));
    for (const text of [verbose, JSON.stringify(await listed())])
      for (const value of ['4321', '700', 'good-server']) assert.not.match(text, value);
  }
});

onPostgresql('a node that does not answer is named', async () => {
  const c = await start('c');
  const partial = async () => objectOr((await a.admin('GET /gateway/nodes')).body).partial;
  await becomes(async () => Object((await a.admin('GET /gateway/nodes')).body).nodes.length, 3);
  await becomes(partial, undefined);
  c.program.signal('SIGSTOP');
  await becomes(partial, ['c']);
  const { body, tookMs } = await a.admin('GET /gateway/nodes');
  assert.equal(objectOr(body).warnings, namesOf('b'));
  assert.ok(tookMs < 2_000, `${tookMs} ms`);
  c.program.signal('SIGCONT');
});
test.run();

async function start(id: string, env: Readonly<Record<string, string>> = {}): Promise<McpNode> {
  const node = await startNode(database, { id, env: { ...env } });
  opened.unshift(node.remove);
  return node;
}
