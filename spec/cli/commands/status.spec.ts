import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, openSession, runCommand, startGateway } from './against-gateway.ts';

const test = suite('gateway status');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
  await gateway.server.gateway.register('demo', { handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
});
test.after(() => gateway.close());

test('shows the gateway and its templates', async () => {
  const { code, out } = await gateway.run('gateway', 'status');
  assert.is(code, 0);
  assert.match(out, new RegExp(`^gateway +${gateway.url}$`, 'm'));
  assert.match(out, /^status +healthy$/m);
  assert.match(out, /^instances +1 of 1 healthy$/m);
  assert.match(out, /^demo +1 of 1 +round_robin +0 +0$/m);
});

test('shows what MCP clients have open', async () => {
  await openSession(gateway.url, 'demo');
  const { out } = await gateway.run('gateway', 'status');
  assert.match(out, /^sessions +1 of at most 10000, 0 parked, 0 moved, 0 lost$/m);
  assert.match(out, /^own processes +0 running, 0 lost$/m);
  assert.match(out, /^TEMPLATE +HEALTHY +STRATEGY +SESSIONS +OWN PROCESSES$/m);
  assert.match(out, /^demo +1 of 1 +round_robin +1 +0$/m);
});

test('leaves out what a gateway does not tell', async () => {
  const template = { total_instances: 2, healthy_instances: 1, load_balancer_strategy: 'random' };
  const sessions = { open: 1, parked: null, max: 5, moved: 2, lost: 3 };
  const stats = { total_requests: 7, active_connections: 0, templates: { demo: template } };
  const health = { status: 'healthy', build: '1' };
  const old = await statusOf({ '/gateway/health': health, '/gateway/stats': stats });
  assert.match(old.out, /^requests +7, 0 in flight\n\nTEMPLATE/m);
  assert.match(old.out, /^demo +1 of 2 +random +0 +0$/m);
  const own = { running: 4, started: 9, lost: 5 };
  const part = { ...stats, sessions, own_processes: own };
  const { out } = await statusOf({ '/gateway/health': health, '/gateway/stats': part });
  assert.match(out, /^sessions +1 of at most 5, 2 moved, 3 lost$/m);
  assert.match(out, /^own processes +4 running, 5 lost$/m);
});

test('shows versions, and what is not healthy with its reason', async () => {
  const { gateway: facade } = gateway.server;
  const down = firstValueFrom(facade.on('instance.unhealthy'));
  await facade.register('far', { id: 'two', endpoint: 'http://127.0.0.1:9/mcp' });
  await down;
  const { out } = await gateway.run('gateway', 'status');
  await facade.deregister('far', 'two');
  assert.match(out, /^version +API \d+\.\d+\.\d+, stagedoor \S+$/m);
  assert.match(out, /^NOT HEALTHY +STATE +REASON\nfar\/two +unhealthy +connection refused$/m);
});

test('prints health and stats as JSON', async () => {
  const { out } = await gateway.run('gateway', 'status', '--json');
  const { url, health, stats } = JSON.parse(out);
  assert.equal([url, health.status, stats.total_requests], [gateway.url, 'healthy', 0]);
});

test('shows health alone to who is not logged in', async () => {
  const guarded = await startGateway({ withAccounts: true });
  const anonymous = { env: { STAGEDOOR_API_KEY: '' } };
  const { code, out, err } = await guarded.runAt(anonymous, 'gateway', 'status');
  const asJson = await guarded.runAt(anonymous, 'gateway', 'status', '--json');
  const whole = await guarded.run('gateway', 'status');
  await guarded.close();
  assert.is(code, 0);
  assert.match(out, /^status +healthy$/m);
  assert.not.match(out, 'requests');
  assert.is(
    err,
    `only its health is shown: not logged in at ${guarded.url}; run "npx stagedoor gateway login <name>", or set STAGEDOOR_API_KEY`,
  );
  assert.equal(Object.keys(JSON.parse(asJson.out)), ['url', 'health']);
  assert.match(whole.out, /^requests +0, 0 in flight$/m);
});

test('fails with one line when nothing listens', async () => {
  const { code, out, err } = await runCommand(['gateway', 'status', '--url', 'http://127.0.0.1:2']);
  assert.equal([code, out], [1, '']);
  assert.is(
    err,
    'stagedoor: nothing listens at http://127.0.0.1:2; start a gateway with "npx stagedoor gateway start"',
  );
});

const exitCodes: readonly (readonly [string, number])[] = [
  ['healthy', 0],
  ['degraded', 0],
  ['unhealthy', 1],
  ['of another version', 1],
];
for (const [word, expected] of exitCodes) {
  test(`ends with exit code ${expected} when the gateway says that it is ${word}`, async () => {
    const { code, out } = await statusOf({ '/gateway/health': { status: word, build: '1' } });
    assert.is(code, expected);
    assert.match(out, new RegExp(`^status +${word}$`, 'm'));
  });
}

test('shows programs of other gateways apart from what is not healthy here', async () => {
  const stopped = { template_name: 'demo', state: 'stopped', healthy: false };
  const instances = [
    { ...stopped, id: 'far', node_id: 'web-2', reason: 'it runs on the node "web-2".' },
    { ...stopped, id: 'untold', node_id: 'web-2', reason: null },
    { ...stopped, id: 'locked', node_id: 'web-1', reason: 'its secrets cannot be read' },
    { ...stopped, id: 'down', node_id: 'web-1', state: 'unhealthy', reason: 'exited with code 1' },
    { ...stopped, id: 'up', node_id: 'web-1', state: 'healthy', healthy: true, reason: null },
  ];
  const { code, out } = await statusOf({
    '/gateway/health': { status: 'degraded', build: '1' },
    '/gateway/registry': { templates: { demo: { instances } } },
  });
  const tables = [
    'NOT HEALTHY  STATE      REASON\ndemo/locked  stopped    its secrets cannot be read',
    'demo/down    unhealthy  exited with code 1\n\nELSEWHERE    NODE\ndemo/far     web-2\ndemo/untold  web-2',
  ];
  assert.equal([code, out.slice(out.indexOf('NOT HEALTHY'))], [0, tables.join('\n')]);
});

test.run();

/** What is shown of a gateway that answers these paths with these bodies. */
async function statusOf(bodies: Readonly<Record<string, unknown>>) {
  const server = createServer((request, response) => {
    response.end(JSON.stringify(bodies[String(request.url)] ?? {}));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const outcome = await runCommand(['gateway', 'status', '--url', `http://127.0.0.1:${port}`]);
  server.close();
  server.closeAllConnections();
  return outcome;
}
