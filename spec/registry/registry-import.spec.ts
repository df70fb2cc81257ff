// Imports of a registry file: the instances of the file follow it, all others stay as they are.

import * as assert from 'uvu/assert';
import type { LoadBalancerSettings } from '../../src/balancing/policy-schemas.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import type { ImportReport } from '../../src/domain/instances/found-instances.ts';
import type { InstanceInput } from '../../src/domain/instances/instance.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import type { RegistryEntry } from '../../src/registry/files/registry-entry.ts';
import { importContents, syncListing } from '../../src/registry/registry-sync.ts';
import { startsForEver } from '../helpers/backends/harness.ts';
import { codeOf, endOf, errorOf } from '../helpers/outcome.ts';
import { Node } from '../helpers/stores/nodes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry import');
const NOTHING: ImportReport = {
  ...{ added: [], changed: [], removed: [] },
  ...{ unchanged: [], skipped: [], settings: [] },
};
const DEREGISTERED = 'it was deregistered, and is added again when it changes';
const TAKEN = '"a" is already registered by another source (api)';
const [a, b] = ['a', 'b'].map((id) => ({ template: 'r', id }));
const skipped = (name: string, reason: string) => ({ template: 'r', name, reason });
let database = new MemoryStore();
let { harness, store, registry } = new Node('a', database);

test.before.each(() => {
  database = new MemoryStore();
  start();
});
test.after.each(() => harness.close());

test('does not restore an instance that the API deleted, even after a restart, until its entry changes', async () => {
  await importAll([entry('a', 'f1')]);
  await registry.instances.deregister('r', 'a');
  store.failing.add('instances.save');
  assert.is(await endOf(registry.instances.register('r', input('a'))), 'Error: instances.save');
  await harness.close();
  start();
  await registry.load();
  assert.equal(await importAll([entry('a', 'f1')]), { ...NOTHING, skipped: [skipped('a', DEREGISTERED)] });
  assert.equal(facts(), []);
  assert.equal(await importAll([entry('a', 'f2')]), { ...NOTHING, added: [a] });
  assert.is((await store.instances.findTombstones('r', ['a'])).get('a'), undefined);
});

test('keeps a change that was made through the API, and ignores instances that the API has registered', async () => {
  await importAll([entry('a', 'f1')]);
  await registry.instances.change('r', 'a', { weight: 9 });
  assert.equal(await importAll([entry('a', 'f1')]), { ...NOTHING, unchanged: [a] });
  assert.equal(facts(), ['a file f1 9']);
  await registry.instances.register('r', input('a'));
  assert.equal(await importAll([entry('a', 'f2')]), { ...NOTHING, skipped: [skipped('a', TAKEN)] });
  assert.equal(facts(), ['a api undefined 1']);
});

test('sets up templates, with and without instances', async () => {
  await importAll([], [{ name: 'empty', loadBalancer: { strategy: 'random' } }]);
  await importAll([entry('a', 'f1')], [{ name: 'r', loadBalancer: { max_retries: 1 } }]);
  assert.is(harness.fleet.templates.group('empty').policy.strategy, 'random');
  assert.is(harness.fleet.templates.group('r').policy.maxRetries, 1);
});

test('reports an invalid entry, imports the others, and does not remove its instance', async () => {
  await importAll([entry('a', 'f1')]);
  const entries = [{ ...entry('a', 'f2'), input: { id: 'a' } }, entry('b', 'f1', { weight: 4 })];
  const refused = [skipped('a', 'The instance has neither "endpoint" nor "command".')];
  for (const isDryRun of [true, false]) {
    const report = await importContents(registry, { templates: [], entries }, { isDryRun });
    assert.equal(report, { ...NOTHING, added: [b], skipped: refused });
  }
  assert.equal(facts(), ['a file f1 1', 'b file f1 4']);
  assert.equal(await store.instances.list(), registry.active.instanceDefinitions());
});

test('replaces an instance whose secrets cannot be read, and removes it only if all entries could be read', async () => {
  await importAll([entry('a', 'f1')]);
  const stored = await database.instances.list();
  database.instances.list = async () => stored.map((each) => ({ ...each, locked: 'no key' }));
  await harness.close();
  start();
  await registry.load();
  const same = { templates: [], entries: [entry('a', 'f1')] };
  assert.equal(await importContents(registry, same, { isDryRun: true }), { ...NOTHING, changed: [a] });
  assert.equal(await importContents(registry, { templates: [], entries: [], isPartial: true }), NOTHING);
  assert.equal(await importAll([]), { ...NOTHING, removed: [a] });
});

test('stops when the database is unavailable, which is not a problem of an entry', async () => {
  store.failing.add('instances.saveMany');
  store.failure = () => databaseUnavailable(new Error('away'));
  assert.is(await codeOf(importAll([entry('a', 'f1'), entry('b', 'f1')])), 'DATABASE_UNAVAILABLE');
  assert.is(store.calls.filter((method) => method.startsWith('instances.save')).length, 1);
});

test('stops when the registry closes, which is not a problem of an entry', async () => {
  const entries = Array.from({ length: 20 }, (_, index) => entry(`i-${index}`, 'f1'));
  const importing = codeOf(importAll(entries));
  await registry.close();
  assert.is(await importing, 'SHUTTING_DOWN');
});

test('saves and removes the entries of a file in groups', async () => {
  const entries = Array.from({ length: 50 }, (_, index) => entry(`i-${index}`, 'f1'));
  assert.is((await importAll(entries)).added.length, 50);
  assert.equal(
    (await database.instances.list()).map(({ id }) => id),
    entries.map(({ input }) => input.id),
  );
  assert.is((await importAll([])).removed.length, 50);
  const changes = store.calls.filter((method) => /^instances\.(save|delete)/.test(method));
  assert.equal(changes, [...Array(7).fill('instances.saveMany'), ...Array(7).fill('instances.deleteMany')]);
});

test('saves entries of several templates with equal ids in one group', async () => {
  const entries = ['r', 's', 't'].map((template) => ({ ...entry('a', 'f1'), template }));
  assert.is((await importAll(entries)).added.length, 3);
  assert.equal(
    registry.active.instanceDefinitions().map(({ serverId }) => serverId),
    ['a', 's.a', 't.a'],
  );
  assert.equal(await database.instances.list(), registry.active.instanceDefinitions());
  const changes = store.calls.filter((method) => method.startsWith('instances.save'));
  assert.equal(changes, ['instances.saveMany']);
});

test('opens an instance again only for another backend, not for another weight', async () => {
  await importAll([entry('a', 'f1'), entry('b', 'f1')]);
  const before = ['a', 'b'].map((id) => harness.fleet.templates.group('r').instance(id));
  const weights = [entry('a', 'f2', { weight: 3 }), entry('b', 'f2', { weight: 4 })];
  assert.equal(await importAll(weights), { ...NOTHING, changed: [a, b] });
  assert.equal(facts(), ['a file f2 3', 'b file f2 4']);
  const elsewhere = { endpoint: 'http://127.0.0.1:2/mcp' };
  await importAll([weights[0] ?? entry('a', 'f2'), entry('b', 'f3', elsewhere)]);
  const isSame = ['a', 'b'].map(
    (id, index) => harness.fleet.templates.group('r').instance(id) === before[index],
  );
  assert.equal(isSame, [true, false]);
});

test('reports an import as incomplete when the database becomes unavailable before a removal', async () => {
  await importAll([entry('a', 'f1')]);
  store.failing.add('instances.deleteMany');
  store.failure = () => databaseUnavailable(new Error('away'));
  const { message } = await errorOf(importAll([entry('b', 'f1')]));
  assert.is(message, 'The database does not answer. The sync is incomplete: repeat it.');
});

test('a registration from a file does not replace an instance of the API', async () => {
  await registry.instances.register('r', input('a'));
  const outcome = codeOf(registry.instances.register('r', input('a'), { source: 'file', fingerprint: 'f1' }));
  assert.is(await outcome, 'DUPLICATE_SERVER');
  assert.equal(facts(), ['a api undefined 1']);
});

test('does not overwrite what the API registers while it runs', async () => {
  store.turns = () => 1;
  const imported = importAll([entry('a', 'f1'), entry('b', 'f1')]);
  const registered = registry.instances.register('r', { ...input('b'), weight: 5 });
  const { added, ...more } = await imported;
  await registered;
  assert.equal([...added, ...more.skipped].length, 2);
  assert.equal(facts().sort(), ['a file f1 1', 'b api undefined 5']);
});

test('tolerates that the API removes or replaces instances while it runs', async () => {
  await importAll([entry('a', 'f1'), entry('b', 'f1'), entry('c', 'f1')]);
  store.turns = () => 1;
  const imported = importAll([]);
  const deregistered = registry.instances.deregister('r', 'b');
  const taken = registry.instances.register('r', { ...input('c'), weight: 5 });
  const ids = (await imported).removed.map(({ id }) => id);
  await Promise.all([deregistered, taken]);
  assert.ok(ids.includes('a') && !ids.includes('c'), ids.join());
  assert.equal(facts(), ['c api undefined 5']);
});

for (const ids of [['a'], ['a', 'b']]) {
  test(`a sync of ${ids.length} keeps a weight that the API changes while it runs`, async () => {
    const sync = (port: number) =>
      syncListing(registry, {
        origin: 'docker:1',
        found: ids.map((id) => ({
          ...{ template: 'r', id, name: id },
          input: { endpoint: `http://127.0.0.1:${port}/mcp` },
        })),
        skipped: [],
      });
    await sync(9);
    store.turns = () => 3;
    const { instances } = registry;
    const tombstones = instances.tombstones.bind(instances);
    let changing: Promise<unknown> | undefined;
    instances.tombstones = async (...of) => {
      const found = await tombstones(...of);
      changing = instances.change('r', 'a', { weight: 9 });
      return found;
    };
    const { changed } = await sync(10);
    await changing;
    const { weight, endpoint } = registry.active.find('r', 'a') ?? {};
    assert.equal([changed.length, weight, endpoint], [ids.length, 9, 'http://127.0.0.1:10/mcp']);
  });
}

test('reports any number of instances that a source skipped', async () => {
  const one = { template: 'r', name: 'a', reason: 'it has no port' };
  const skipped = Array.from({ length: 200_000 }, () => one);
  const report = await syncListing(registry, { origin: 'docker:1', found: [], skipped });
  assert.is(report.skipped.length, skipped.length);
});

test('does not change templates that the caller may not use', async () => {
  await importAll([entry('a', 'f1')]);
  const other = { ...entry('b', 'f1'), template: 'other' };
  const templates = ['r', 'other'].map((name) => ({ name, loadBalancer: { max_retries: 1 } }));
  const mayUse = (template: string) => template === 'other';
  assert.equal(await importContents(registry, { templates, entries: [other] }, { mayUse }), {
    ...NOTHING,
    ...{ added: [{ template: 'other', id: 'b' }], settings: ['other'] },
  });
  assert.equal(registry.active.settings('r').loadBalancer, {});
});

test('takes many turns of the event loop for thousands of templates, also when nothing is stored', async () => {
  const templates = Array.from({ length: 1_000 }, (_, index) => ({ name: `t${index}`, loadBalancer: {} }));
  const entries = templates.map(({ name }) => ({ ...entry('a', 'f1'), template: name }));
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const { added } = await importContents(registry, { templates, entries }, { isDryRun: true });
  clearImmediate(counting);
  assert.is(added.length, 1_000);
  assert.ok(turns >= 40, `${turns} turns`);
});

test.run();

function start(): void {
  ({ harness, store, registry } = new Node('a', database));
  harness.open = startsForEver;
}

function importAll(
  entries: readonly RegistryEntry[],
  templates: readonly { name: string; loadBalancer: LoadBalancerSettings }[] = [],
): Promise<ImportReport> {
  return importContents(registry, { templates, entries });
}

function input(id: string) {
  return { endpoint: 'http://127.0.0.1:9/mcp', id };
}

function entry(id: string, fingerprint: string, fields: InstanceInput = {}): RegistryEntry {
  return { template: 'r', input: { ...input(id), ...fields }, fingerprint };
}

function facts() {
  return registry.active
    .instanceDefinitions()
    .map((one) => `${one.id} ${one.source} ${one.fingerprint} ${one.weight}`);
}
