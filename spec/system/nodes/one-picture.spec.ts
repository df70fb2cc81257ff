// Questions about the deployment at any of its nodes: two complete gateways on one PostgreSQL, which ask each other.

import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { type Caller, caller, newKey } from '../../helpers/clients/caller.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { becomes, untilStatus } from '../../helpers/eventually.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('one picture of several nodes', {
  timeoutMs: 120_000,
});
/** Two steps of the history. */
const HISTORY_MS = 25_000;
let a: McpNode;
let b: McpNode;

before(async () => {
  [a, b] = [await start('a'), await start('b')];
  const backend = await startHttpServer();
  opened.push(() => backend.close());
  await register(a, 'shared', { id: 'shared-1', endpoint: backend.url });
  await register(b, 'program', {
    id: 'program-b',
    node: 'b',
    command: process.execPath,
    args: [stdioServerPath],
  });
  await untilStatus(200, () => b.admin('POST /mcp/shared/tools/call', { name: 'name' }), heardWithinMs);
  await untilStatus(200, () => a.admin('GET /mcp/program/health'), heardWithinMs);
});

onPostgresql('statistics are the sums of both nodes, at each of them', async () => {
  await untilStatus(200, () => a.admin('POST /mcp/shared/tools/call', { name: 'name' }), heardWithinMs);
  for (const { admin } of [a, b])
    await untilStatus(200, () => admin('POST /mcp/program/tools/call', { name: 'pid' }), heardWithinMs);
  for (const { admin } of [a, b]) {
    const seen = async () => {
      const { instances, templates, p50_ms, ...stats } = await bodyOf(admin, 'GET /gateway/stats');
      const [shared, program] = ['shared-1', 'program-b'].map((id) => objectOr(objectOr(instances)[id]));
      const { total_instances, healthy_instances } = objectOr(objectOr(templates).program);
      return {
        requests: [stats.total_requests, shared?.requests, program?.requests],
        states: [shared?.state, program?.state, total_instances, healthy_instances],
        isTimed: Number(p50_ms) > 0,
        partial: stats.partial,
      };
    };
    await becomes(seen, {
      requests: [4, 2, 2],
      states: ['healthy', 'healthy', 1, 1],
      isTimed: true,
      partial: undefined,
    });
  }
});

onPostgresql('the history has the calls of both nodes, at each of them', async () => {
  for (const { admin } of [a, b]) {
    const requests = async () => {
      const { points, partial } = await bodyOf(admin, 'GET /gateway/history');
      const totals = (Array.isArray(points) ? points : []).map((point) => objectOr(objectOr(point).totals));
      const isTimed = totals.some(({ requests, p50_ms }) => Number(requests) > 0 && Number(p50_ms) > 0);
      return [totals.reduce((sum, one) => sum + Number(one.requests), 0), isTimed, partial];
    };
    await becomes(requests, [4, true, undefined], HISTORY_MS);
  }
});

onPostgresql(
  'a program is shown as the node that runs it sees it; health counts the deployment',
  async () => {
    for (const { admin } of [a, b]) {
      const { body, headers } = await admin('GET /servers?include_health=true');
      const [program, shared] = Array.isArray(body) ? body : [];
      const { state, node_id, pid, health } = program;
      assert.equal([state, node_id, typeof pid, health.state], ['healthy', 'b', 'number', 'healthy']);
      assert.equal([shared.state, shared.nodes, headers.get('x-partial')], ['healthy', undefined, null]);
      const registry = await bodyOf(admin, 'GET /gateway/registry');
      assert.equal(
        [objectOr(registry.stats).total_instances, objectOr(registry.stats).healthy_instances],
        [2, 2],
      );
      const whole = await bodyOf(admin, 'GET /gateway/health');
      assert.equal([whole.status, whole.instances], ['healthy', { total: 2, healthy: 2, unhealthy: 0 }]);
      const ofTemplate = await bodyOf(admin, 'GET /mcp/program/health');
      assert.equal([ofTemplate.status, ofTemplate.healthy_instances], ['healthy', 1]);
    }
    const { body } = await a.admin('GET /servers/program-b');
    assert.is(Object(body).state, 'healthy');
  },
);

onPostgresql('a caller of some templates gets their part of all nodes', async () => {
  const { body } = await a.admin('POST /auth/api-keys', {
    ...{ name: 'reader', permissions: ['gateway:read'], templates: ['program'] },
  });
  const stats = await bodyOf(
    caller(a.url, { 'X-API-Key': String(objectOr(body).key) }),
    'GET /gateway/stats',
  );
  assert.equal([stats.total_requests, Object.keys(objectOr(stats.instances))], [2, ['program-b']]);
});

onPostgresql('sessions are listed and ended at any node', async () => {
  const { headers } = await newKey(a.admin, 'clients');
  const clients = await Promise.all(
    [a, a, b, b, b].map((node) => LegacyClient.open(node.wire, '/mcp/shared', { headers })),
  );
  const page = async ({ admin }: McpNode, query: string) => {
    const { body } = await admin(`GET /gateway/sessions?${query}`);
    const { sessions, next_cursor: cursor, partial } = Object(body);
    assert.is(partial, undefined);
    return { nodes: sessions.map(({ node }: Json) => node), ids: sessions.map(({ id }: Json) => id), cursor };
  };
  const wanted = clients.map(({ sessionId }) => sessionFingerprint(sessionId)).sort();
  for (const node of [a, b]) {
    const all = await page(node, '');
    assert.equal(all.ids, wanted);
    assert.equal(all.nodes.sort(), ['a', 'a', 'b', 'b', 'b']);
    // Pages: no session is missing, none comes twice.
    const first = await page(node, 'limit=2');
    const second = await page(node, `limit=2&cursor=${first.cursor}`);
    const third = await page(node, `limit=2&cursor=${second.cursor}`);
    assert.equal([...first.ids, ...second.ids, ...third.ids, third.cursor], [...wanted, null]);
  }
  const stats = async (node: McpNode) =>
    objectOr((await bodyOf(node.admin, 'GET /gateway/stats')).sessions).open;
  await becomes(() => stats(a), 5);
  for (const id of wanted) {
    assert.is((await a.admin(`DELETE /gateway/sessions/${id}`)).status, 204);
    assert.is((await b.admin(`DELETE /gateway/sessions/${id}`)).status, 404);
  }
  for (const node of [a, b]) await becomes(async () => (await page(node, '')).ids, []);
  assert.is((await clients[2]?.ask('tools/list'))?.status, 404, 'its client has to initialize again');
});

onPostgresql('an instance is drained, resumed and restarted for the deployment', async () => {
  const stateAt = async ({ admin }: McpNode, id: string) =>
    objectOr((await admin(`GET /servers/${id}`)).body).state;
  for (const [id, template] of [
    ['shared-1', 'shared'],
    ['program-b', 'program'],
  ] as const) {
    const command = async (name: string) => {
      const { status, body } = await a.admin(`POST /gateway/instances/${template}/${id}/${name}`);
      assert.equal([status, Object(body).partial, Object(body).server_id], [200, undefined, id]);
    };
    await command('drain');
    const call = async () => (await b.admin(`POST /mcp/${template}/tools/call`, { name: 'name' })).status;
    await becomes(call, 503);
    await command('resume');
    for (const node of [a, b]) await becomes(() => stateAt(node, id), 'healthy');
  }
  const pid = async () => objectOr((await b.admin('GET /servers/program-b')).body).pid;
  const before = await pid();
  assert.is((await a.admin('POST /gateway/instances/program/program-b/restart')).status, 200);
  await becomes(async () => typeof (await pid()) === 'number' && (await pid()) !== before, true);
});

onPostgresql('a node that does not answer is named, and delays nothing for long', async () => {
  const c = await start('c');
  const partialAt = async ({ admin }: McpNode) => (await bodyOf(admin, 'GET /gateway/stats')).partial;
  await becomes(async () => Object(await bodyOf(a.admin, 'GET /gateway/nodes')).nodes.length, 3);
  await becomes(() => partialAt(a), undefined);
  c.program.signal('SIGSTOP');
  await becomes(() => partialAt(a), ['c']);
  const { tookMs } = await a.admin('GET /gateway/stats');
  assert.ok(tookMs < 2_000, `${tookMs} ms`);
  c.program.signal('SIGKILL');
  await becomes(() => partialAt(a), undefined, 20_000);
});
test.run();

async function register({ admin }: McpNode, template: string, instance: object): Promise<void> {
  const { status, body } = await admin('POST /gateway/register?wait=10', {
    template_name: template,
    instance,
  });
  assert.is(status, 201, JSON.stringify(body));
}

async function bodyOf(ask: Caller, request: string): Promise<Json> {
  return objectOr((await ask(request)).body);
}

async function start(id: string): Promise<McpNode> {
  const node = await startNode(database, { id });
  opened.unshift(node.remove);
  return node;
}
