// A store that fails, or does not answer: the change is refused as a whole, store and fleet stay in step, and the next
// change is not affected.

import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import type { Delivered } from '../../src/domain/errors/errors.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { startsForEver } from '../helpers/backends/harness.ts';
import { endOf, errorOf } from '../helpers/outcome.ts';
import { Node } from '../helpers/stores/nodes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: failures');
const ENDPOINT = { endpoint: 'http://127.0.0.1:9/mcp' };
const FILE = { source: 'file', fingerprint: 'f1' } as const;
let { harness, store, registry } = new Node('a', new MemoryStore());

test.before.each(() => {
  ({ harness, store, registry } = new Node('a', new MemoryStore()));
  harness.open = startsForEver;
});
test.after.each(async () => {
  await registry.close();
  await harness.close();
});

for (const method of ['templates.save', 'instances.save'] as const) {
  test(`registers nothing, and replaces no instance, when ${method} fails`, async () => {
    store.failing.add(method);
    assert.is(await endOf(registry.instances.register('r', { ...ENDPOINT, id: 'a' })), `Error: ${method}`);
    assert.equal([await store.instances.list(), registry.active.instanceDefinitions()], [[], []]);
    assert.is(harness.eventsOf('instance.registered').length, 0);
    store.failing.clear();
    await registry.instances.register('r', { ...ENDPOINT, id: 'a' });
    assert.equal(await store.instances.list(), registry.active.instanceDefinitions());
    const before = harness.fleet.templates.group('r').ref('a');
    store.failing.add(method);
    const change = { loadBalancer: { timeout: 9 } };
    const found = await endOf(registry.instances.register('r', { ...ENDPOINT, id: 'a', weight: 2 }, change));
    assert.is(found, `Error: ${method}`);
    assert.is(harness.fleet.templates.group('r').ref('a'), before);
    assert.equal(await store.instances.list(), [before.definition]);
  });
}

test('changes an instance whose row was edited by hand, which changes no revision', async () => {
  const { definition } = await registry.instances.register('r', { ...ENDPOINT, id: 'a' });
  const revision = await store.revision();
  await store.instances.save({ ...definition, weight: 7 });
  store.revision = async () => revision;
  const { weight, metadata } = await registry.instances.change('r', 'a', { metadata: { owner: 'b' } });
  assert.equal([weight, metadata], [7, { owner: 'b' }]);
});

test('deregisters nothing when instances.delete fails', async () => {
  await registry.instances.register('r', { ...ENDPOINT, id: 'a' }, FILE);
  const ref = harness.fleet.templates.group('r').ref('a');
  store.failing.add('instances.delete');
  assert.is(await endOf(registry.instances.deregister('r', 'a')), 'Error: instances.delete');
  assert.is(harness.fleet.templates.group('r').ref('a'), ref);
  assert.is(ref.state, 'starting');
  assert.equal(await store.instances.list(), [ref.definition]);
  assert.is((await store.instances.findTombstones('r', ['a'])).get('a'), undefined);
  store.failing.clear();
  await registry.instances.deregister('r', 'a');
  assert.equal([await store.instances.list(), registry.active.instanceDefinitions()], [[], []]);
  assert.is((await store.instances.findTombstones('r', ['a'])).get('a'), 'f1');
});

test('a change that cannot be stored has no effect', async () => {
  await registry.instances.register('r', { ...ENDPOINT, id: 'a', weight: 1 });
  store.failing.add('instances.save').add('templates.save');
  assert.is(await endOf(registry.instances.change('r', 'a', { weight: 2 })), 'Error: instances.save');
  assert.is(await endOf(registry.templates.change('r', { timeout: 9 })), 'Error: templates.save');
  assert.is(harness.fleet.templates.group('r').ref('a').weight, 1);
  assert.is(harness.fleet.templates.group('r').policy.callTimeoutMs, DEFAULT_POLICY.callTimeoutMs);
  assert.equal(registry.active.settings('r').loadBalancer, {});
});

test('refuses changes once it is closed, and finishes earlier ones, failed or not', async () => {
  store.turns = () => 3;
  const before = registry.instances.register('r', { ...ENDPOINT, id: 'a' });
  store.failing.add('instances.delete');
  const failed = endOf(registry.instances.deregister('r', 'a'));
  const closed = registry.close();
  const after = endOf(registry.instances.register('r', { ...ENDPOINT, id: 'b' }));
  await closed;
  assert.is((await before).definition.id, 'a');
  assert.equal([await failed, await after], ['Error: instances.delete', 'SHUTTING_DOWN']);
  for (const change of [
    registry.instances.deregister('r', 'a'),
    registry.instances.withdraw('r', ['a'], 'file'),
    registry.instances.change('r', 'a', {}),
    registry.templates.ensure('r', {}),
    registry.templates.change('r', {}),
  ]) {
    assert.is(await endOf(change), 'SHUTTING_DOWN');
  }
  assert.is(registry.active.find('r', 'a')?.id, 'a');
});

const away = (delivered: Delivered) => () => databaseUnavailable(new Error('away'), delivered);
const NOTHING = 'The database does not answer. Nothing was changed.';
const PERHAPS =
  'The database does not answer. It is unknown whether the change was made: check before repeating it.';

test('an error says whether the change was stored', async () => {
  await registry.instances.register('r', { ...ENDPOINT, id: 'a' }, FILE);
  store.failure = away('unknown');
  const fates = new Map<string, unknown>();
  for (const [method, change] of [
    ['instances.save', () => registry.instances.register('r', { ...ENDPOINT, id: 'b' })],
    ['instances.delete', () => registry.instances.deregister('r', 'a')],
    ['templates.save', () => registry.templates.change('r', { timeout: 9 })],
  ] as const) {
    store.failing.clear();
    store.failing.add(method);
    fates.set(method, await errorSummary(change()));
  }
  assert.equal(Object.fromEntries(fates), {
    'instances.save': ['unknown', PERHAPS],
    'instances.delete': ['unknown', PERHAPS],
    'templates.save': ['unknown', PERHAPS],
  });
});

test('the outcome of a registration is unknown when its settings were stored, but not its instance', async () => {
  store.failing.add('instances.save');
  store.failure = away('no');
  const register = () =>
    registry.instances.register('r', { ...ENDPOINT, id: 'a' }, { loadBalancer: { timeout: 9 } });
  assert.equal(await errorSummary(register()), ['unknown', PERHAPS]);
  assert.equal(registry.active.settings('r').loadBalancer, { timeout: 9 });
  // They are stored already.
  assert.equal(await errorSummary(register()), ['no', NOTHING]);
});

test('the outcome of a deletion of a definition is unknown when its empty template remains', async () => {
  await registry.storedDefinitions.put('r', { id: 'r', name: 'R', description: 'r', version: '1.0.0' });
  await registry.instances.register('r', { ...ENDPOINT, id: 'a' });
  await registry.instances.deregister('r', 'a');
  store.failure = away('no');
  store.failing.add('templates.delete');
  assert.equal(await errorSummary(registry.storedDefinitions.delete('r')), ['unknown', PERHAPS]);
  assert.equal(await store.definitions.list(), []);
});

test.run();

/** Whether the change may have happened, and the message. */
async function errorSummary(change: Promise<unknown>): Promise<unknown> {
  const { delivered, message } = await errorOf(change);
  return [delivered, message];
}
