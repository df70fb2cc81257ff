// Health of templates and of the gateway, liveness and readiness.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { VERSION } from '../../../../src/domain/version.ts';
import { createGateway, Gateway } from '../../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../../src/persistence/memory/memory-store.ts';
import { definition } from '../../../helpers/backends/profiles.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { type AppFixture, appFor, startApp } from '../../../helpers/http/app.ts';
import { suite } from '../../../helpers/suite.ts';
import { alarmsOf } from '../../../helpers/time/simulated-time.ts';
import { startRawServer } from '../../../transports/raw-server.ts';

const test = suite('the health routes');
const DEAD = { id: 'dead', endpoint: 'http://127.0.0.1:1' };
const app = appFor(test, () => startApp(), 'each');
test.before.each(() => app.serve('demo', 'one'));

const ask = (path: string) => app.ask('GET', path);

test('show a template and its instances, by id or as a list', async () => {
  await app.gateway.register('demo', { ...DEAD, weight: 3 }, { waitMs: 0 });
  await becomes(() => app.gateway.instance('demo', DEAD.id).snapshot.state, 'unhealthy');
  await app.ask('POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  const { status, body } = await ask('/mcp/demo/health');
  const { instances, ...counts } = body;
  assert.is(status, 200);
  assert.equal(counts, {
    ...{ template_name: 'demo', status: 'healthy', strategy: 'round_robin' },
    ...{ total_instances: 2, healthy_instances: 1, health_percentage: 50 },
  });
  const { one, dead } = Object(instances);
  const { latency_ms, last_check, score, ...rest } = one;
  assert.match(`${latency_ms} ${score}`, /^\d+(\.\d{1,3})? \d+(\.\d)?$/);
  assert.match(last_check, /^\d{4}-.*Z$/);
  const fresh = { in_flight: 0, restarts: 0, ejection: null };
  assert.equal(rest, {
    ...{ ...fresh, healthy: true, status: 'healthy', state: 'healthy', transport: 'in-process', weight: 1 },
    ...{ consecutive_failures: 0, reason: null, next_attempt_at: null },
  });
  assert.equal(
    [dead.healthy, dead.status, dead.state, dead.transport, dead.weight, dead.latency_ms, dead.reason],
    [false, 'unhealthy', 'unhealthy', 'http', 3, null, 'connection refused'],
  );
  const list = (await ask('/mcp/demo/health?format=array')).body.instances;
  const listed = Array.isArray(list) && list.map(({ id, transport }) => `${id} ${transport}`);
  assert.equal(listed, ['one in-process', 'dead http']);
  assert.is((await ask('/mcp/demo/health?format=object')).status, 200);
  const refused = await ask('/mcp/demo/health?format=xml');
  assert.equal(refused.body.detail, [
    { loc: ['query', 'format'], msg: "Input should be 'object' or 'array'", type: 'enum' },
  ]);
});

test('show why an instance is unhealthy only to callers with gateway:write', async () => {
  const other = await startWithAccounts();
  await other.gateway.register('demo', DEAD, { waitMs: 500 }).catch(() => undefined);
  const reasonFor = async (who: Credentials) =>
    Object(Object((await other.as(who, 'GET', '/mcp/demo/health')).body.instances).dead).reason;
  assert.equal([await reasonFor(other.user), await reasonFor(other.admin)], [null, 'connection refused']);
  await other.close();
});

test('answer 404 for an unknown template, and unhealthy for a template without instances', async () => {
  assert.is((await ask('/mcp/unknown/health')).body.error_code, 'TEMPLATE_NOT_FOUND');
  await app.gateway.deregister('demo', 'one');
  const { status, body } = await ask('/mcp/demo/health');
  const found = [status, body.status, body.total_instances, body.health_percentage, body.instances];
  assert.equal(found, [200, 'unhealthy', 0, 0, {}]);
});

test('list draining instances and programs of other nodes, but do not count them', async () => {
  const store = new MemoryStore();
  const program = { template: 'demo', transport: 'stdio', command: 'run', nodeId: 'there' } as const;
  await store.instances.save(definition('far', program));
  const other = await startApp({ gateway: { store, node: { id: 'here' } } });
  for (const id of ['one', 'two']) await other.serve('demo', id);
  for (const id of ['dead', 'lost']) await other.gateway.register('demo', { ...DEAD, id });
  other.gateway.drain('demo', 'one');
  const { body } = await other.ask('GET', '/mcp/demo/health');
  assert.equal([body.total_instances, body.healthy_instances, body.health_percentage], [3, 1, 33.3]);
  assert.equal(Object.keys(Object(body.instances)), ['far', 'one', 'two', 'dead', 'lost']);
  const counts = (await other.ask('GET', '/gateway/health')).body.instances;
  assert.equal(counts, { total: 3, healthy: 1, unhealthy: 2 });
  await other.close();
});

test('count templates and instances, and derive healthy, degraded or unhealthy', async () => {
  const { uptime, ...view } = (await ask('/gateway/health')).body;
  assert.ok(Number.isInteger(uptime));
  const numbers = { database: 'connected', templates: 1, version: '2.0.0', build: VERSION };
  assert.equal(view, { ...numbers, status: 'healthy', instances: { total: 1, healthy: 1, unhealthy: 0 } });
  const status = async () => (await ask('/gateway/health')).body.status;
  await app.gateway.register('demo', DEAD);
  assert.is(await status(), 'degraded');
  await app.gateway.deregister('demo', 'one');
  assert.is(await status(), 'unhealthy');
  await app.gateway.deregister('demo', 'dead');
  assert.is(await status(), 'healthy', 'nothing is registered');
});

test('report healthy at /health even if all backends are unhealthy', async () => {
  await app.gateway.deregister('demo', 'one');
  await app.gateway.register('demo', DEAD);
  const { timestamp, uptime, ...view } = (await ask('/health')).body;
  assert.is(new Date(String(timestamp)).toISOString(), timestamp);
  assert.equal(view, {
    ...{ status: 'healthy', version: '2.0.0', database: 'connected' },
    mcp_servers: { total: 1, healthy: 0, unhealthy: 1 },
  });
});

test('answer 503 at /health with the same fields when the database does not answer', async () => {
  class DeadStore extends MemoryStore {
    override ping(): Promise<void> {
      return Promise.reject(new Error('gone'));
    }
  }
  const other = await startApp({ gateway: { store: new DeadStore() } });
  const { outcome, body, headers } = await other.ask('GET', '/health');
  assert.is(outcome, '503 DATABASE_UNAVAILABLE');
  assert.equal([body.status, body.database], ['unhealthy', 'disconnected']);
  assert.is(body.request_id, headers.get('x-request-id'));
  assert.equal([typeof body.detail, typeof body.uptime], ['string', 'number']);
  const { status, body: whole } = await other.ask('GET', '/gateway/health');
  assert.equal([status, whole.status, whole.database], [200, 'unhealthy', 'disconnected']);
  assert.is((await other.ask('GET', '/readyz')).status, 200);
  await other.close();
});

test('report alive, and ready until the gateway closes and refuses calls', async () => {
  const live = await ask('/livez');
  assert.equal([live.status, live.body], [200, { status: 'alive' }]);
  const ready = await ask('/readyz');
  assert.equal([ready.status, ready.body], [200, { status: 'ready' }]);
  await app.gateway.close({ graceMs: 0 });
  const { status, body } = await ask('/readyz');
  assert.equal([status, body.status, body.error_code], [503, 'shutting down', 'SHUTTING_DOWN']);
  const call = await app.ask('POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  assert.equal([call.outcome, call.headers.get('retry-after')], ['503 SHUTTING_DOWN', '5']);
  assert.is((await ask('/livez')).status, 200);
});

test('are not ready after the announcement of a stop, while calls are served', async () => {
  const leaving = await startApp();
  leaving.gateway.internals.readiness.announceClose();
  const { outcome, body } = await leaving.ask('GET', '/readyz');
  assert.equal([outcome, body.status], ['503 SHUTTING_DOWN', 'shutting down']);
  const call = await leaving.ask('POST', '/mcp/demo/tools/call', { body: { name: 'name' } });
  assert.is(call.outcome, '404 TEMPLATE_NOT_FOUND');
  assert.is((await leaving.ask('GET', '/health')).status, 200);
  await leaving.close();
});

test('become ready when each stored instance has opened or failed, or after five seconds', async () => {
  const store = new MemoryStore();
  const earlier = await createGateway({ store });
  const server = await startRawServer(() => {});
  await earlier.register('demo', { id: 'silent', endpoint: server.url });
  await earlier.close({ graceMs: 0 });
  const { clock, ring } = alarmsOf(LIMITS.firstOpeningsMs);
  const start = async (options = {}) => startApp({ gateway: await createGateway({ store, ...options }) });
  const ready = async (node: AppFixture) => (await node.ask('GET', '/readyz')).outcome;
  const [failing, slow] = [await start(), await start({ clock })];
  for (const node of [failing, slow]) assert.is(await ready(node), '503 NO_HEALTHY_INSTANCE');
  ring();
  assert.is(await ready(slow), '200');
  assert.is(await ready(failing), '503 NO_HEALTHY_INSTANCE');
  await server.close();
  await becomes(() => ready(failing), '200');
  await failing.gateway.register('demo', { id: 'new', endpoint: server.url });
  assert.is(await ready(failing), '200');
  for (const node of [failing, slow]) await node.close();
});

test('answer 503 while the registry is loaded, after the checks of credentials and templates', async () => {
  const starting = await startWithAccounts({ gateway: new Gateway(new MemoryStore(), {}) });
  const { outcome, body } = await starting.ask('GET', '/readyz');
  assert.is(outcome, '503 NO_HEALTHY_INSTANCE');
  assert.equal([body.status, body.detail], ['starting', 'The gateway is starting.']);
  const health = (who: Credentials) => starting.as(who, 'GET', '/mcp/demo/health');
  const early = await health(starting.user);
  assert.equal([early.outcome, early.body.detail], [outcome, body.detail]);
  assert.is(early.headers.get('retry-after'), '1');
  const stranger = await starting.key(['gateway:read'], ['other']);
  assert.is((await health(stranger)).outcome, '404 TEMPLATE_NOT_FOUND', 'not theirs, started or not');
  const rpc = await starting.as(starting.user, 'POST', '/mcp/demo', { body: {} });
  assert.equal([rpc.status, Object(rpc.body.error).code], [503, 503]);
  // `EventSource` tries again after the end of a stream, and at no other status.
  const headers = { accept: 'text/event-stream', 'last-event-id': `${'x'.repeat(51)}.0` };
  const stream = await starting.as(starting.user, 'GET', '/mcp/demo/sse', { headers });
  assert.equal([stream.status, stream.headers.get('content-type')], [200, 'text/event-stream']);
  assert.is(stream.text, 'retry: 1000\n\n');
  assert.is((await starting.ask('GET', '/mcp/demo/sse', { headers })).status, 401);
  assert.is((await starting.as(starting.admin, 'GET', '/auth/users')).status, 200);
  assert.is((await starting.ask('GET', '/openapi.json')).status, 200);
  await starting.close();
});

test.run();
