// What is registered: store and fleet say the same, whatever is asked and whatever fails. Concurrent changes are in
// registry-races.spec.ts, registry files in registry-import.spec.ts. Time is simulated.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { backendUnavailable } from '../src/domain/error-catalogue.ts';
import { DEFAULT_POLICY } from '../src/domain/policy.ts';
import { MemoryStore } from '../src/persistence/memory-store.ts';
import { Registry } from '../src/registry.ts';
import type { InProcessHandler } from '../src/transports/transport.ts';
import { Harness, settled, startsForEver } from './helpers/failing-backend.ts';
import { codeOf } from './helpers/outcome.ts';
import { suite } from './helpers/suite.ts';

const test = suite('registry');
const ENDPOINT = { endpoint: 'http://127.0.0.1:9/mcp' };
const handler: InProcessHandler = () => ({});
let harness = new Harness();
let store = new MemoryStore();
let handlers = new Map<string, InProcessHandler>();
let registry = make();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: Date.parse('2026-01-01') });
  harness = new Harness();
  store = new MemoryStore();
  handlers = new Map();
  registry = make();
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('stores an instance and starts it', async () => {
  const { definition, replaced } = await registry.register('r', { ...ENDPOINT, id: 'a', weight: 3 });
  assert.is(replaced, false);
  assert.equal(definition, {
    id: 'a',
    serverId: 'a',
    template: 'r',
    transport: 'http',
    endpoint: ENDPOINT.endpoint,
    args: [],
    env: {},
    headers: {},
    weight: 3,
    metadata: {},
    source: 'api',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
  });
  assert.equal(await store.listInstances(), [definition]);
  assert.equal(await store.listTemplates(), [{ name: 'r', loadBalancer: {} }]);
  assert.equal(registry.definitions(), [definition]);
  assert.equal(harness.fleet.get('r', 'a').definition, definition);
});

test('says how the instance is when it was waited for, and when it was not', async () => {
  const { state, healthy } = await registry.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 1_000 });
  assert.equal([state, healthy], ['healthy', true]);
  harness.open = startsForEver;
  const unwaited = await registry.register('r', { ...ENDPOINT, id: 'b' });
  assert.equal([unwaited.state, unwaited.healthy, unwaited.reason], ['starting', false, null]);
  harness.open = async () => {
    throw backendUnavailable('connection refused', { delivered: 'no' });
  };
  const waiting = registry.register('r', { ...ENDPOINT, id: 'c' }, { waitMs: 1_000, mayBeUnhealthy: true });
  await settled();
  mock.timers.tick(1_000);
  const { state: late, healthy: isHealthy, reason } = await waiting;
  assert.equal([late, isHealthy, reason], ['unhealthy', false, 'connection refused']);
});

test('refuses settings that nobody could follow, before anything is stored', async () => {
  await registry.settle('r', {});
  const bogus = Object({ strategy: 'bogus' });
  for (const refused of [
    registry.changeTemplate('r', bogus),
    registry.settle('r', bogus),
    registry.register('r', ENDPOINT, { loadBalancer: bogus }),
  ]) {
    const error = await refused.catch((reason: unknown) => reason);
    assert.match(
      String(error),
      /The request is not valid: load_balancer: strategy: must be one of round_robin, /,
    );
    assert.is(await codeOf(refused), 'VALIDATION_ERROR');
  }
  assert.equal(await store.listTemplates(), [{ name: 'r', loadBalancer: {} }]);
  assert.equal(await store.listInstances(), []);
});

test('takes a setting away that is changed to null, and stores nothing of it', async () => {
  await registry.settle('r', { timeout: 7, session: 'shared' });
  const { loadBalancer } = await registry.changeTemplate('r', { timeout: null, max_retries: null });
  assert.equal(loadBalancer, { session: 'shared' });
  assert.equal(await store.listTemplates(), [{ name: 'r', loadBalancer: { session: 'shared' } }]);
});

test('deletes a template that nothing is registered under, with its settings', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' }, { loadBalancer: { timeout: 7 } });
  const refused = await registry.deleteTemplate('r').catch((thrown: unknown) => thrown);
  assert.match(String(refused), 'template: 1 instance is registered: deregister it first');
  await registry.deregister('r', 'a');
  await registry.deleteTemplate('r');
  assert.equal([await store.listTemplates(), harness.fleet.has('r')], [[], false]);
  assert.not.ok(harness.fleet.templates.includes('r'));
  assert.is(await codeOf(registry.deleteTemplate('r')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(registry.changeTemplate('r', {})), 'TEMPLATE_NOT_FOUND');
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  assert.equal([registry.settings('r').loadBalancer, harness.fleet.has('r')], [{}, true]);
});

test('refuses an endpoint whose address is denied, and keeps nothing of it', async () => {
  registry = make((address) => address === '10.0.0.1');
  const refused = registry.register('r', { endpoint: 'http://10.0.0.1' });
  assert.is(await codeOf(refused), 'ENDPOINT_NOT_ALLOWED');
  assert.equal([await store.listTemplates(), registry.definitions()], [[], []]);
  await registry.register('r', ENDPOINT);
});

test('gives an id to an instance without one', async () => {
  const { definition } = await registry.register('r', ENDPOINT);
  assert.match(definition.id, /^r-[0-9a-f]{8}$/);
  assert.is(definition.serverId, definition.id);
});

test('gives instances of the same id in two templates different server ids', async () => {
  const first = await registry.register('r', { ...ENDPOINT, id: 'a' });
  const second = await registry.register('s', { ...ENDPOINT, id: 'a' });
  assert.equal([first.definition.serverId, second.definition.serverId], ['a', 's.a']);
});

test('waits until the instance is healthy when it is told to', async () => {
  const registered = registry.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 1_000 });
  await registered;
  assert.is(harness.fleet.get('r', 'a').state, 'healthy');
});

test('rejects for an instance that did not become healthy in time, and keeps it', async () => {
  harness.open = startsForEver;
  const outcome = outcomeOf(registry.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 1_000 }));
  let isOver = false;
  void outcome.then(() => {
    isOver = true;
  });
  await tick(999);
  assert.is(isOver, false);
  await tick(1);
  assert.is(
    await outcome,
    'BACKEND_UNAVAILABLE: Instance "a" of "r" is not healthy after 1 s; it stays registered and is tried again.',
  );
  assert.is(harness.fleet.get('r', 'a').state, 'starting');
});

test('says why the instance is not healthy in time', async () => {
  harness.open = async () => {
    throw backendUnavailable('connection refused', { delivered: 'no' });
  };
  const outcome = outcomeOf(registry.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 1_000 }));
  await settled();
  mock.timers.tick(1_000);
  assert.match(await outcome, /is tried again \(connection refused\)\.$/);
});

test('waits no longer for an instance that was taken out meanwhile', async () => {
  harness.open = startsForEver;
  const outcome = outcomeOf(registry.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 60_000 }));
  await settled();
  await registry.deregister('r', 'a');
  assert.is(
    await outcome,
    'SERVER_NOT_FOUND: Instance "a" of "r" was taken out or replaced before it was healthy.',
  );
});

test('replaces in place: same server id, same creation, new everything else', async () => {
  const { definition: before } = await registry.register('r', { ...ENDPOINT, id: 'a', weight: 3 });
  await tick(5_000);
  const second = { endpoint: 'http://127.0.0.1:8/other', id: 'a' };
  const { definition, replaced } = await registry.register('r', second);
  assert.is(replaced, true);
  assert.equal(definition, {
    ...before,
    endpoint: second.endpoint,
    weight: 1,
    updatedAt: '2026-01-01T00:00:05.000Z',
  });
  assert.equal(await store.listInstances(), [definition]);
  assert.equal(registry.definitions(), [definition]);
});

test('tells that it is registered, and then that it starts', async () => {
  harness.open = startsForEver;
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  await registry.deregister('r', 'a');
  await settled();
  assert.equal(
    harness.events.map((event) => ('replaced' in event ? `${event.type} ${event.replaced}` : event.type)),
    [
      'template.changed',
      'instance.registered false',
      'instance.starting',
      'instance.registered true',
      'instance.draining',
      'instance.starting',
      'instance.draining',
      'instance.deregistered',
      'instance.stopped',
    ],
  );
});

test('does not store a function, and forgets what was stored under its id', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  const { replaced } = await registry.register('r', { id: 'a' }, { handler });
  assert.is(replaced, true);
  assert.is(handlers.get('a'), handler);
  assert.equal(await store.listInstances(), []);
  await registry.changeInstance('r', 'a', { weight: 2 });
  assert.equal(await store.listInstances(), []);
  assert.is(registry.find('r', 'a')?.weight, 2);
});

test('forgets the function when an endpoint takes its place, and when it is deregistered', async () => {
  await registry.register('r', { id: 'a' }, { handler });
  await registry.register('r', { id: 'b' }, { handler });
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  assert.equal([...handlers.keys()], ['b']);
  await registry.deregister('r', 'b');
  assert.equal([...handlers.keys()], []);
});

test('takes an instance out of store and fleet, and says so of an unknown one', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' }, { loadBalancer: { max_retries: 7 } });
  await registry.deregister('r', 'a');
  assert.equal([await store.listInstances(), registry.definitions()], [[], []]);
  assert.equal(registry.settings('r').loadBalancer, { max_retries: 7 });
  assert.is(await codeOf(registry.deregister('r', 'a')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(registry.deregister('x', 'a')), 'TEMPLATE_NOT_FOUND');
});

test('takes an id again that was deregistered', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  await registry.deregister('r', 'a');
  const { replaced, definition } = await registry.register('r', { ...ENDPOINT, id: 'a' });
  assert.equal([replaced, definition.serverId], [false, 'a']);
  assert.equal(await store.listInstances(), [definition]);
});

test('changes weight and metadata while the instance goes on', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' }, { waitMs: 1_000 });
  await tick(1_000);
  const ref = harness.fleet.get('r', 'a');
  const changed = await registry.changeInstance('r', 'a', { weight: 9, metadata: { zone: 'x' } });
  assert.equal(
    [changed.weight, changed.metadata, changed.updatedAt],
    [9, { zone: 'x' }, '2026-01-01T00:00:01.000Z'],
  );
  assert.is(harness.fleet.get('r', 'a'), ref);
  assert.equal([ref.state, ref.weight, ref.definition], ['healthy', 9, changed]);
  assert.equal(await store.listInstances(), [changed]);
  assert.is(await codeOf(registry.changeInstance('r', 'b', { weight: 1 })), 'SERVER_NOT_FOUND');
});

test('lays settings over those a template has', async () => {
  await registry.settle('r', { strategy: 'weighted', timeout: 5 });
  const settings = await registry.changeTemplate('r', { max_retries: 0 });
  assert.equal(settings, {
    name: 'r',
    loadBalancer: { strategy: 'weighted', timeout: 5, max_retries: 0 },
  });
  await registry.register('r', ENDPOINT, { loadBalancer: { timeout: 6 } });
  assert.equal(await store.listTemplates(), [
    { name: 'r', loadBalancer: { strategy: 'weighted', timeout: 6, max_retries: 0 } },
  ]);
  const { strategy, callTimeoutMs, maxRetries, healthIntervalMs } = harness.fleet.group('r').policy;
  assert.equal(
    [strategy, callTimeoutMs, maxRetries, healthIntervalMs],
    ['weighted_round_robin', 6_000, 0, 30_000],
  );
});

test('does not know the settings of a template that was never registered', async () => {
  assert.is(await codeOf(registry.changeTemplate('x', {})), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => registry.settings('x')), 'TEMPLATE_NOT_FOUND');
});

test('tells no change of a template that is none', async () => {
  await registry.settle('r', { timeout: 5 });
  await registry.settle('r', { timeout: 5 });
  await registry.settle('r', {});
  await registry.register('r', ENDPOINT, { loadBalancer: { timeout: 5 } });
  assert.is(harness.told('template.changed').length, 1);
});

test('starts what the store holds, with the settings that it holds', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' }, { loadBalancer: { timeout: 5 } });
  await registry.settle('empty', { strategy: 'random' });
  const before = registry.definitions();
  await harness.close();
  harness = new Harness();
  registry = make();
  await registry.load();
  assert.equal(registry.definitions(), before);
  assert.equal(harness.fleet.templates, ['empty', 'r', 't']);
  assert.is(harness.fleet.group('r').policy.callTimeoutMs, 5_000);
  assert.is(harness.fleet.group('empty').policy.strategy, 'random');
  assert.equal(registry.settings('r').loadBalancer, { timeout: 5 });
});

test('finds nothing wrong with a stored instance whose template is not stored', async () => {
  await registry.register('r', { ...ENDPOINT, id: 'a' });
  const [definition] = await store.listInstances();
  store = new MemoryStore();
  if (definition !== undefined) await store.saveInstance({ ...definition, template: 'orphan' });
  await make().load();
  assert.is(harness.fleet.get('orphan', 'a').serverId, 'a');
});

test.run();

function make(isDenied?: (address: string) => boolean): Registry {
  const { fleet, emit } = harness;
  const parts = { store, fleet, policy: DEFAULT_POLICY, handlers, emit };
  return new Registry(isDenied === undefined ? parts : { ...parts, isDenied });
}

/** Code and message of the error that it rejects with. */
function outcomeOf(registered: Promise<unknown>): Promise<string> {
  return registered.then(
    () => 'resolved',
    (thrown) => `${thrown.code}: ${thrown.message}`,
  );
}

async function tick(ms: number): Promise<void> {
  await settled();
  mock.timers.tick(ms);
  await settled();
}
