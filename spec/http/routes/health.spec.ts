import * as assert from 'uvu/assert';
import { MemoryStore } from '../../../src/persistence/memory-store.ts';
import { startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of health');
const started = startApp();
test.before(async () => (await started).serve('demo', 'one'));
test.after(async () => (await started).close());

const ask = async (path: string) => (await started).ask('GET', path);

test('tell about a template', async () => {
  const { status, body } = await ask('/mcp/demo/health');
  assert.is(status, 200);
  assert.equal([body.template_name, body.total_instances, body.healthy_instances], ['demo', 1, 1]);
  assert.equal([body.health_percentage, body.status, body.strategy], [100, 'healthy', 'round_robin']);
  assert.equal(Object.keys(Object(body.instances)), ['one']);
});

test('give the instances of a template as a list', async () => {
  const { body } = await ask('/mcp/demo/health?format=array');
  assert.is(Array.isArray(body.instances) && body.instances[0].id, 'one');
  assert.is((await ask('/mcp/demo/health?format=object')).status, 200);
});

test('refuse another format', async () => {
  const { status, body } = await ask('/mcp/demo/health?format=xml');
  assert.is(status, 422);
  assert.equal(body.detail, [
    { loc: ['query', 'format'], msg: "Input should be 'object' or 'array'", type: 'enum' },
  ]);
});

test('are 404 for an unknown template only', async () => {
  const app = await started;
  assert.is((await ask('/mcp/unknown/health')).body.error_code, 'TEMPLATE_NOT_FOUND');
  await app.serve('emptied', 'e');
  await app.gateway.deregister('emptied', 'e');
  const { status, body } = await ask('/mcp/emptied/health');
  assert.equal([status, body.total_instances, body.health_percentage, body.instances], [200, 0, 0, {}]);
});

test('leave a draining instance out of the counts and in the list', async () => {
  const app = await started;
  await app.serve('drained', 'd1');
  await app.serve('drained', 'd2');
  app.gateway.drain('drained', 'd1');
  const { body } = await ask('/mcp/drained/health');
  assert.equal([body.total_instances, body.healthy_instances, body.health_percentage], [1, 1, 100]);
  assert.equal(Object.keys(Object(body.instances)), ['d1', 'd2']);
});

test('tell about the gateway on both surfaces', async () => {
  const a = await ask('/gateway/health');
  assert.equal(
    [a.status, a.body.status, a.body.version, a.body.build],
    [200, 'healthy', '2.0.0', '0.0.0-spec'],
  );
  const b = await ask('/health');
  assert.equal(
    [b.status, b.body.status, b.body.database, b.body.version],
    [200, 'healthy', 'connected', '2.0.0'],
  );
  assert.equal(Object.keys(Object(b.body.mcp_servers)), ['total', 'healthy', 'unhealthy']);
});

test('are 503 with the same object when the database does not answer', async () => {
  class DeadStore extends MemoryStore {
    override ping(): Promise<void> {
      return Promise.reject(new Error('gone'));
    }
  }
  const app = await startApp({ gateway: { store: new DeadStore() } });
  const { status, body, headers } = await app.ask('GET', '/health');
  assert.is(status, 503);
  assert.equal(
    [body.status, body.database, body.error_code],
    ['unhealthy', 'disconnected', 'DATABASE_UNAVAILABLE'],
  );
  assert.is(body.request_id, headers.get('x-request-id'));
  assert.type(body.detail, 'string');
  assert.type(body.uptime, 'number');
  const a = await app.ask('GET', '/gateway/health');
  assert.equal([a.status, a.body.status, a.body.database], [200, 'unhealthy', 'disconnected']);
  assert.is((await app.ask('GET', '/readyz')).status, 200);
  await app.close();
});

test.run();
