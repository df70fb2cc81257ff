import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import {
  GatewayHealthView,
  gatewayHealthView,
  ServerHealthView,
  serverHealthView,
} from '../../../src/http/routes/health.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the gateway health views');
const DEAD = { id: 'dead', endpoint: 'http://127.0.0.1:1' };

test('tell healthy, degraded and unhealthy apart', async () => {
  const app = await startApp();
  const status = () => gatewayHealthView(app.gateway, 'connected', '1.2.3').status;
  assert.is(status(), 'healthy', 'nothing is registered');
  await app.gateway.register('demo', DEAD);
  assert.is(status(), 'unhealthy');
  await app.serve('demo', 'one');
  assert.is(status(), 'degraded');
  await app.gateway.deregister('demo', 'dead');
  assert.is(status(), 'healthy');
  assert.is(gatewayHealthView(app.gateway, 'disconnected', '1.2.3').status, 'unhealthy');
  await app.close();
});

test('count templates and instances and tell both versions', async () => {
  const app = await startApp();
  await app.serve('demo', 'one');
  const { uptime, ...view } = gatewayHealthView(app.gateway, 'connected', '1.2.3');
  assert.ok(Number.isInteger(uptime));
  assert.equal(view, {
    status: 'healthy',
    database: 'connected',
    templates: 1,
    instances: { total: 1, healthy: 1, unhealthy: 0 },
    version: '2.0.0',
    build: '1.2.3',
  });
  assert.ok(Compile(GatewayHealthView).Check({ ...view, uptime }));
  await app.close();
});

test('do not call the gateway unhealthy because its backends are', async () => {
  const app = await startApp();
  await app.gateway.register('demo', DEAD);
  const { timestamp, uptime, ...view } = serverHealthView(app.gateway, 'connected');
  assert.is(new Date(timestamp).toISOString(), timestamp);
  assert.equal(view, {
    status: 'healthy',
    version: '2.0.0',
    database: 'connected',
    mcp_servers: { total: 1, healthy: 0, unhealthy: 1 },
  });
  assert.is(serverHealthView(app.gateway, 'disconnected').status, 'unhealthy');
  assert.ok(Compile(ServerHealthView).Check(serverHealthView(app.gateway, 'disconnected')));
  await app.close();
});

test.run();
