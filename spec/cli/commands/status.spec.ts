import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, runCommand, startGateway } from './against-gateway.ts';

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
  assert.match(out, /^demo +1 of 1 +round_robin$/m);
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

test('fails with one line when nothing listens', async () => {
  const { code, out, err } = await runCommand(['gateway', 'status', '--url', 'http://127.0.0.1:2']);
  assert.equal([code, out], [1, '']);
  assert.is(
    err,
    'stagedoor: nothing listens at http://127.0.0.1:2; start a gateway with "stagedoor gateway start"',
  );
});

test('fails when the gateway says that it is unhealthy', async () => {
  const server = createServer((request, response) => {
    const isHealth = request.url === '/gateway/health';
    response.end(JSON.stringify(isHealth ? { status: 'unhealthy', build: '1' } : {}));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const { code, out } = await runCommand(['gateway', 'status', '--url', `http://127.0.0.1:${port}`]);
  server.close();
  server.closeAllConnections();
  assert.is(code, 1);
  assert.match(out, /^status +unhealthy$/m);
});

test.run();
