// The registry: store and fleet agree after every change and every failure. What callers see of it is in
// http/routes/, several nodes in registry-nodes*.spec.ts, files in registry-import.spec.ts. Time is simulated.

import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../src/domain/errors/backend-errors.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { startsForEver } from '../helpers/backends/harness.ts';
import { definition as instance } from '../helpers/backends/profiles.ts';
import { errorOf } from '../helpers/outcome.ts';
import { Node } from '../helpers/stores/nodes.ts';
import { suite } from '../helpers/suite.ts';
import { pass, settled, simulateTime } from '../helpers/time/simulated-time.ts';

const test = suite('registry');
const ENDPOINT = { endpoint: 'http://127.0.0.1:9/mcp' };
const handler = () => ({});
let { harness, store, handlers, registry } = new Node('a', new MemoryStore());

test.after.each(() => harness.close());
simulateTime(test, () => {
  ({ harness, store, handlers, registry } = new Node('a', new MemoryStore()));
});

test('a registration returns the state of the instance, with and without a wait', async () => {
  const { state, healthy } = await registry.instances.register(
    'r',
    { ...ENDPOINT, id: 'a' },
    { waitMs: 1_000 },
  );
  assert.equal([state, healthy], ['healthy', true]);
  harness.open = startsForEver;
  const unwaited = await registry.instances.register('r', { ...ENDPOINT, id: 'b' });
  assert.equal([unwaited.state, unwaited.healthy, unwaited.reason], ['starting', false, null]);
  harness.open = async () => {
    throw backendUnavailable('connection refused', { delivered: 'no' });
  };
  const waiting = registry.instances.register(
    'r',
    { ...ENDPOINT, id: 'c' },
    { waitMs: 1_000, mayBeUnhealthy: true },
  );
  await pass(1_000);
  const { state: late, healthy: isHealthy, reason } = await waiting;
  assert.equal([late, isHealthy, reason], ['unhealthy', false, 'connection refused']);
  const rejected = errorOf(registry.instances.register('r', { ...ENDPOINT, id: 'd' }, { waitMs: 1_000 }));
  await pass(1_000);
  assert.match((await rejected).message, /the gateway retries \(connection refused\)\.$/);
});

test('a registration does not wait for a program that does not exist', async () => {
  const reason = 'could not be started: ENOENT, there is no program "x"';
  harness.open = async () => {
    throw backendUnavailable(reason, { delivered: 'no' });
  };
  const registered = registry.instances.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 300_000 });
  assert.is(
    (await errorOf(registered)).message,
    `Instance "a" of "r" is not healthy; it stays registered and the gateway retries (${reason}).`,
  );
});

test('a registration stops waiting for an instance that is deregistered meanwhile', async () => {
  harness.open = startsForEver;
  const outcome = errorOf(registry.instances.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 60_000 }));
  await settled();
  await registry.instances.deregister('r', 'a');
  const { code, message } = await outcome;
  const said = 'Instance "a" of "r" was deregistered or replaced before it was healthy.';
  assert.equal([code, message], ['SERVER_NOT_FOUND', said]);
});

test('stores an instance, and replaces it in place: same server id, same creation, new everything else', async () => {
  const { definition: before } = await registry.instances.register('r', { ...ENDPOINT, id: 'a', weight: 3 });
  const at = '1970-01-01T00:00:00.000Z';
  const fields = { template: 'r', transport: 'http', ...ENDPOINT, weight: 3 } as const;
  assert.equal(before, instance('a', { ...fields, createdAt: at, updatedAt: at }));
  await pass(5_000);
  const second = { endpoint: 'http://127.0.0.1:8/other', id: 'a' };
  const { definition, replaced } = await registry.instances.register('r', second);
  assert.is(replaced, true);
  assert.equal(definition, {
    ...before,
    endpoint: second.endpoint,
    weight: 1,
    updatedAt: '1970-01-01T00:00:05.000Z',
  });
  assert.equal(await store.instances.list(), [definition]);
  assert.equal(await store.templates.list(), [{ name: 'r', loadBalancer: {} }]);
  assert.equal(registry.active.instanceDefinitions(), [definition]);
  assert.equal(harness.fleet.templates.group('r').ref('a').definition, definition);
});

test('does not store a function, and forgets what was stored under its id', async () => {
  await registry.instances.register('r', { ...ENDPOINT, id: 'a' });
  const { replaced } = await registry.instances.register('r', { id: 'a' }, { handler });
  assert.is(replaced, true);
  assert.is(handlers.get('a'), handler);
  assert.equal(await store.instances.list(), []);
  await registry.instances.change('r', 'a', { weight: 2 });
  assert.equal(await store.instances.list(), []);
  assert.is(registry.active.find('r', 'a')?.weight, 2);
  await registry.instances.register('r', { id: 'b' }, { handler });
  await registry.instances.register('r', { ...ENDPOINT, id: 'a' });
  assert.equal([...handlers.keys()], ['b'], 'an endpoint takes its place');
  await registry.instances.deregister('r', 'b');
  assert.equal([...handlers.keys()], []);
});

test('emits no template.changed when the settings stay the same', async () => {
  await registry.templates.ensure('r', { timeout: 5 });
  await registry.templates.ensure('r', { timeout: 5 });
  await registry.templates.ensure('r', {});
  await registry.instances.register('r', ENDPOINT, { loadBalancer: { timeout: 5 } });
  assert.is(harness.eventsOf('template.changed').length, 1);
});

test('loads a stored instance whose template is not stored', async () => {
  await registry.instances.register('r', { ...ENDPOINT, id: 'a' });
  const [definition] = await store.instances.list();
  const other = new Node('b', new MemoryStore());
  if (definition !== undefined) await other.store.instances.save({ ...definition, template: 'orphan' });
  await other.registry.load();
  assert.is(other.harness.fleet.templates.group('orphan').ref('a').serverId, 'a');
  await other.close();
});

test.run();
