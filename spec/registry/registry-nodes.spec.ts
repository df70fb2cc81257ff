// Several nodes on one database: an instance that one node registers is on all nodes, and a program runs on its own node only.
// Time is simulated; many changes at once are in registry-nodes-races.spec.ts.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import { databaseUnavailable } from '../../src/domain/errors/gateway-errors.ts';
import { TASKS_PER_TURN } from '../../src/domain/time/task-scheduler.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { START_TASKS } from '../../src/registry/kinds/instance-registry.ts';
import { importContents } from '../../src/registry/registry-sync.ts';
import { codeOf, endOf } from '../helpers/outcome.ts';
import { Node } from '../helpers/stores/nodes.ts';
import { suite } from '../helpers/suite.ts';
import { pass, simulateTime } from '../helpers/time/simulated-time.ts';
import { turnsOf } from '../helpers/time/turns.ts';

const test = suite('registry: nodes');
const ENDPOINT = { endpoint: 'http://127.0.0.1:9/mcp' };
const COMMAND = { command: 'run', env_vars: { KEY: 'secret' } };
let database = new MemoryStore();
let a = new Node('a', database);
let b = new Node('b', database);

simulateTime(test);
test.before.each(async () => {
  database = new MemoryStore();
  a = new Node('a', database);
  b = new Node('b', database);
  await Promise.all([a.registry.load(), b.registry.load()]);
});
test.after.each(() => Promise.all([a.close(), b.close()]));

test('follows registrations, changes, replacements and deregistrations elsewhere, with the same events', async () => {
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' }, { loadBalancer: { timeout: 5 } });
  await received(b);
  assert.is(b.harness.fleet.templates.group('r').ref('x').state, 'healthy');
  assert.is(b.harness.fleet.templates.group('r').policy.callTimeoutMs, 5_000);
  const ref = b.harness.fleet.templates.group('r').ref('x');
  await a.registry.instances.change('r', 'x', { weight: 7 });
  await received(b);
  assert.is(b.harness.fleet.templates.group('r').ref('x'), ref, 'its session continues');
  assert.is(ref.weight, 7);
  await a.registry.instances.register('r', { endpoint: 'http://127.0.0.1:8/mcp', id: 'x' });
  await received(b);
  assert.is.not(b.harness.fleet.templates.group('r').ref('x'), ref);
  await a.registry.templates.change('r', { timeout: 6 });
  await received(b);
  assert.equal(b.definitions, a.definitions);
  await a.registry.instances.deregister('r', 'x');
  await received(b);
  assert.equal(b.definitions, []);
  assert.equal(b.registry.active.settings('r').loadBalancer, { timeout: 6 });
  assert.equal(b.changes, a.changes);
  const changes = ['registered x', 'changed x', 'replaced x', 'settings r', 'deregistered x'];
  assert.equal(b.changes, ['settings r', ...changes]);
});

test('its own changes lead to no work at the next notice, and are not read again before the next change', async () => {
  a.store.calls.length = 0;
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x', metadata: { zero: -0, gone: undefined } });
  await a.registry.instances.register('r', { ...COMMAND, id: 'y' }, { loadBalancer: { timeout: 5 } });
  await a.registry.instances.register('r', { id: 'f' }, { handler: () => ({}) });
  const refs = a.harness.fleet.templates.group('r').refs;
  const { length } = a.harness.events;
  await received(a);
  assert.equal([a.harness.fleet.templates.group('r').refs, a.harness.events.slice(length)], [refs, []]);
  await a.registry.instances.change('r', 'x', { weight: 2 });
  await a.registry.instances.deregister('r', 'y');
  await a.registry.templates.ensure('s', { timeout: 5 });
  await a.registry.templates.delete('s');
  await received(a);
  assert.not.ok(a.store.calls.includes('instances.list'), 'only the revision is read');
  await b.registry.instances.register('r', { ...ENDPOINT, id: 'z' }); // b has not read the changes of a
  await a.registry.instances.change('r', 'z', { weight: 3 });
  await received(b);
  assert.equal([a.definitions, b.definitions], [a.definitions, await database.instances.list()]);
  assert.is(a.harness.fleet.templates.group('r').ref('x'), refs[0]);
});

test('lists a program of another node, and never starts it', async () => {
  const { definition } = await a.registry.instances.register('r', { ...COMMAND, id: 'x' });
  assert.is(definition.nodeId, 'a');
  await received(b);
  assert.equal(b.definitions, [definition]);
  assert.is(b.harness.transports.size, 0);
  assert.is(b.registry.active.find('r', 'x')?.nodeId, 'a');
  assert.is(await codeOf(() => b.harness.fleet.templates.group('r').ref('x')), 'NO_HEALTHY_INSTANCE');
  assert.equal(b.changes, ['settings r', 'registered x']);
  assert.is(b.harness.eventsOf('instance.starting').length, 0);
});

test('starts its own programs at its start, and lists those of others', async () => {
  await a.registry.instances.register('r', { ...COMMAND, id: 'x' });
  await b.registry.instances.register('r', { ...COMMAND, id: 'y' });
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'z' });
  const again = new Node('a', database);
  await again.registry.load();
  const running = again.harness.fleet.templates.group('r').refs.map(({ id }) => id);
  const listed = again.definitions.map(({ id, nodeId }) => `${id} of ${nodeId}`);
  assert.equal(running, ['x', 'z']);
  assert.equal(listed, ['x of a', 'y of b', 'z of undefined']);
  assert.equal(again.changes, [], 'earlier registrations are not reported');
  await again.close();
});

test('changes and deregisters a program of another node, which stops it at the next notice', async () => {
  await a.registry.instances.register('r', { ...COMMAND, id: 'x' });
  await received(b);
  const ref = a.harness.fleet.templates.group('r').ref('x');
  const changed = await b.registry.instances.change('r', 'x', { weight: 4, metadata: { zone: 'z' } });
  assert.equal([changed.weight, changed.nodeId, b.definitions], [4, 'a', [changed]]);
  await received(a);
  assert.is(a.harness.fleet.templates.group('r').ref('x'), ref);
  assert.equal(ref.definition, changed);
  const transport = a.harness.backend('x');
  await b.registry.instances.deregister('r', 'x');
  assert.equal([b.definitions, await database.instances.list()], [[], []]);
  assert.equal(b.harness.eventsOf('instance.deregistered').length, 1);
  assert.is(transport.isClosed, false);
  await received(a);
  assert.equal([transport.isClosed, a.definitions], [true, []]);
});

test('registering a program of another node takes it over, and that node stops it and reports that', async () => {
  const { definition: before } = await a.registry.instances.register('r', { ...COMMAND, id: 'x' });
  await received(b);
  const { definition, replaced } = await b.registry.instances.register(
    'r',
    { ...COMMAND, id: 'x' },
    { waitMs: 1_000 },
  );
  assert.equal([replaced, definition.nodeId, definition.serverId], [true, 'b', before.serverId]);
  assert.is(definition.createdAt, before.createdAt);
  assert.is(b.harness.fleet.templates.group('r').ref('x').state, 'healthy');
  const transport = a.harness.backend('x');
  const { length } = a.harness.events;
  await received(a);
  assert.is(transport.isClosed, true);
  assert.equal(a.definitions, [definition]);
  assert.is(a.harness.fleet.templates.group('r').pool.candidates.length, 0);
  const found = a.harness.events.slice(length).map(({ type }) => type);
  assert.equal(found, ['instance.registered', 'instance.draining', 'instance.stopped']);
});

test('keeps server ids unique over all nodes, also of instances that are registered at once', async () => {
  await a.registry.instances.register('r', { ...COMMAND, id: 'x' });
  await received(b);
  const known = await b.registry.instances.register('s', { ...ENDPOINT, id: 'x' });
  assert.is(known.definition.serverId, 's.x');
  await received(a);
  const ids = await Promise.all(
    (
      [
        [a, 'r'],
        [b, 's'],
      ] as const
    ).map(async ([node, template]) => {
      const { definition } = await node.registry.instances.register(template, { ...COMMAND, id: 'y' });
      return definition.serverId;
    }),
  );
  // Which one is first depends on the file system; the other one read which node has the id.
  const isAFirst = ids[0] === 'y';
  assert.equal(ids, isAFirst ? ['y', 's.y'] : ['r.y', 'y']);
  const other = isAFirst ? b.registry.active.find('r', 'y') : a.registry.active.find('s', 'y');
  assert.is(other?.nodeId, isAFirst ? 'a' : 'b');
});

test('changes or replaces an instance or template that another node registered a moment ago', async () => {
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  assert.is((await b.registry.instances.change('r', 'x', { weight: 2 })).weight, 2);
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'y' });
  await b.registry.instances.deregister('r', 'y');
  await a.registry.templates.ensure('s', { timeout: 5 });
  assert.equal((await b.registry.templates.change('s', { max_retries: 1 })).loadBalancer, {
    timeout: 5,
    max_retries: 1,
  });
  const { definition } = await a.registry.instances.register(
    'r',
    { ...ENDPOINT, id: 'y' },
    { isLimited: true },
  );
  const again = await b.registry.instances.register('r', { ...ENDPOINT, id: 'y' });
  assert.equal([again.replaced, again.definition.serverId], [true, definition.serverId]);
  assert.is(await codeOf(b.registry.instances.deregister('r', 'z')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(b.registry.templates.change('z', {})), 'TEMPLATE_NOT_FOUND');
});

test('of two registrations of one id at once, the later one replaces the earlier one on both nodes', async () => {
  for (const node of [a, b]) node.store.turns = () => 3;
  const register = (node: Node) => node.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  const [one, other] = await Promise.all([register(a), register(b)]);
  assert.equal([one.replaced, other.replaced].toSorted(), [false, true]);
  assert.is(one.definition.createdAt, other.definition.createdAt);
});

test('registrations and changes of two nodes in turn do not read the registry', async () => {
  for (const node of [a, b]) await node.registry.instances.register('r', { ...ENDPOINT, id: node.id });
  await received(a);
  for (const node of [a, b]) node.store.calls.length = 0;
  for (const node of [a, b, a, b]) {
    await node.registry.instances.register('r', ENDPOINT);
    await node.registry.instances.change('r', node.id, { weight: 2 });
  }
  for (const { store } of [a, b]) assert.not.ok(store.calls.includes('instances.list'));
});

test('forgets a template that was deleted elsewhere, unless it has a function here', async () => {
  await a.registry.templates.ensure('r', { timeout: 5 });
  await a.registry.templates.ensure('s', { timeout: 5 });
  await received(b);
  await b.registry.instances.register('s', {}, { handler: () => ({}) });
  for (const template of ['r', 's']) await a.registry.templates.delete(template);
  await received(b);
  const left = ({ harness: { fleet } }: typeof a) =>
    ['r', 's'].filter((template) => fleet.templates.has(template));
  assert.equal([left(a), left(b)], [[], ['s']]);
  assert.equal(await database.templates.list(), []);
  await a.registry.templates.ensure('r', {});
  await b.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  assert.is(await codeOf(a.registry.templates.delete('r')), 'VALIDATION_ERROR');
});

test('does not undo a change of another node by one of its own', async () => {
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  await received(b);
  const { definition } = await a.registry.instances.register('r', {
    endpoint: 'http://127.0.0.1:8/mcp',
    id: 'x',
  });
  const changed = await b.registry.instances.change('r', 'x', { weight: 9 });
  assert.is(changed.endpoint, definition.endpoint);
  await a.registry.templates.change('r', { timeout: 9 });
  await b.registry.instances.register('r', ENDPOINT, { loadBalancer: { max_retries: 2 } });
  await a.registry.templates.ensure('s', { timeout: 3 });
  await b.registry.instances.register('s', ENDPOINT);
  assert.equal(await database.templates.list(), [
    { name: 'r', loadBalancer: { timeout: 9, max_retries: 2 } },
    { name: 's', loadBalancer: { timeout: 3 } },
  ]);
});

test('keeps both changes of two nodes at the same moment, and does not revive a deregistered instance', async () => {
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  await received(b);
  b.store.turns = () => 5;
  /** What becomes of a change of one node that another one overtakes between its question and its answer. */
  const overtaken = async (change: Promise<unknown>, by: () => Promise<unknown>) => {
    for (let left = 7; left > 0; left -= 1) await turn();
    await by();
    return endOf(change);
  };
  const byMetadata = () => a.registry.instances.change('r', 'x', { metadata: { zone: 'z' } });
  assert.is(await overtaken(b.registry.instances.change('r', 'x', { weight: 9 }), byMetadata), 'done');
  const [{ weight, metadata } = {}] = await database.instances.list();
  assert.equal([weight, metadata], [9, { zone: 'z' }]);
  const byRemoval = () => a.registry.instances.deregister('r', 'x');
  const late = b.registry.instances.change('r', 'x', { weight: 1 });
  assert.is(await overtaken(late, byRemoval), 'SERVER_NOT_FOUND');
  assert.equal(await database.instances.list(), []);
});

test('deletes no template in which another node registers an instance at the same moment', async () => {
  await a.registry.templates.ensure('r', { timeout: 5 });
  await received(b);
  b.store.turns = () => 5;
  const deleted = codeOf(b.registry.templates.delete('r'));
  for (let left = 7; left > 0; left -= 1) await turn();
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  assert.is(await deleted, 'VALIDATION_ERROR');
  assert.equal(await database.templates.list(), [{ name: 'r', loadBalancer: { timeout: 5 } }]);
});

test('a template that another node deleted a moment before a registration has no settings on either node', async () => {
  await a.registry.templates.ensure('r', { timeout: 5 });
  await b.registry.templates.delete('r');
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  for (const node of [a, b]) {
    await received(node);
    assert.equal(node.registry.active.settings('r').loadBalancer, {});
    assert.is(node.harness.fleet.templates.group('r').policy.callTimeoutMs, DEFAULT_POLICY.callTimeoutMs);
  }
});

test('writes a setting that is unchanged here when another node has changed it', async () => {
  await a.registry.templates.ensure('r', { timeout: 5 });
  await received(b);
  await a.registry.templates.change('r', { timeout: 9 });
  await b.registry.templates.change('r', { timeout: 5 });
  assert.equal(await database.templates.list(), [{ name: 'r', loadBalancer: { timeout: 5 } }]);
  await a.registry.templates.delete('r');
  assert.is(await codeOf(b.registry.templates.change('r', { timeout: 7 })), 'TEMPLATE_NOT_FOUND');
});

test('an import removes no programs of other nodes', async () => {
  const entry = (id: string, input: object) => ({ template: 'r', fingerprint: id, input: { ...input, id } });
  await importContents(a.registry, { templates: [], entries: [entry('x', COMMAND), entry('y', ENDPOINT)] });
  await received(b);
  const report = await importContents(b.registry, { templates: [], entries: [entry('z', COMMAND)] });
  const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
  assert.equal([idsOf(report.added), idsOf(report.removed)], [['z'], ['y']]);
  const same = await importContents(b.registry, { templates: [], entries: [entry('x', COMMAND)] });
  assert.equal([idsOf(same.unchanged), idsOf(same.removed)], [['x'], ['z']]);
  assert.is(b.registry.active.find('r', 'x')?.nodeId, 'a');
});

test('an import leaves alone what another node registered through the API a moment ago', async () => {
  const entry = (id: string, fingerprint: string) => ({
    template: 'r',
    fingerprint,
    input: { ...ENDPOINT, id },
  });
  await importContents(a.registry, { templates: [], entries: [entry('x', 'f1'), entry('y', 'f1')] });
  await received(b);
  for (const id of ['x', 'y']) await a.registry.instances.register('r', { ...ENDPOINT, id });
  const report = await importContents(b.registry, { templates: [], entries: [entry('x', 'f2')] });
  assert.equal([report.changed, report.removed], [[], []]);
  // The same after the beginning of an import.
  const file = { source: 'file', fingerprint: 'f1' } as const;
  for (const id of ['v', 'w']) await b.registry.instances.register('r', { ...ENDPOINT, id }, file);
  await received(a);
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'v' });
  assert.is(
    await codeOf(b.registry.instances.register('r', { ...ENDPOINT, id: 'v' }, file)),
    'DUPLICATE_SERVER',
  );
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'w' });
  assert.equal(await b.registry.instances.withdraw('r', ['w'], 'file'), []);
  // The same between the read and the deletion.
  for (const id of ['p', 'q']) await b.registry.instances.register('r', { ...ENDPOINT, id }, file);
  const { deleteMany } = database.instances;
  const registering = async (...given: Parameters<typeof deleteMany>) => {
    Object.assign(database.instances, { deleteMany });
    await a.registry.instances.register('r', { ...ENDPOINT, id: 'p' });
    return deleteMany(...given);
  };
  Object.assign(database.instances, { deleteMany: registering });
  assert.equal(await b.registry.instances.withdraw('r', ['p', 'q'], 'file'), ['q']);
  const sources = (await database.instances.list()).map(({ id, source }) => `${id} ${source}`);
  assert.equal(sources, ['x api', 'y api', 'v api', 'w api', 'p api']);
});

test('a deregistration lasts when another node imported a new entry a moment ago', async () => {
  const imported = (fingerprint: string) =>
    importContents(a.registry, {
      templates: [],
      entries: [{ template: 'r', fingerprint, input: { ...ENDPOINT, id: 'x' } }],
    });
  await imported('f1');
  await received(b);
  await imported('f2');
  await b.registry.instances.deregister('r', 'x');
  await received(a);
  assert.equal((await imported('f2')).skipped.length, 1);
});

test('serves the known instances while the database is down, and catches up afterwards', async () => {
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
  await received(b);
  const writes = ['instances.save', 'templates.save', 'instances.delete'] as const;
  for (const method of ['revision', 'instances.list', ...writes] as const) b.store.failing.add(method);
  b.store.failure = () => databaseUnavailable(new Error('connection refused'));
  b.storeChanges$.next({ kind: 'away' });
  await a.registry.instances.register('r', { ...ENDPOINT, id: 'y' });
  for (const change of [
    b.registry.instances.register('r', { ...ENDPOINT, id: 'z' }),
    b.registry.instances.register('new', ENDPOINT),
    b.registry.instances.change('r', 'x', { weight: 2 }),
    b.registry.instances.deregister('r', 'x'),
    b.registry.templates.change('r', { timeout: 1 }),
  ]) {
    assert.is(await codeOf(change), 'DATABASE_UNAVAILABLE');
  }
  const found = b.definitions.map(({ id, weight }) => [id, weight]);
  assert.equal(found, [['x', 1]]);
  assert.equal(b.registry.active.settings('r').loadBalancer, {});
  assert.is(b.harness.fleet.templates.group('r').ref('x').state, 'healthy');
  await pass(500);
  assert.is(b.harness.eventsOf('registry.behind').length, 1);
  b.store.failing.clear();
  b.storeChanges$.next({ kind: 'answered' });
  await pass(500);
  assert.equal(b.definitions, a.definitions);
  assert.equal(idsOn(b), ['x', 'y']);
  assert.is(b.harness.eventsOf('registry.current').length, 1);
});

for (const method of ['instances.save', 'instances.delete', 'templates.save'] as const) {
  test(`follows its own ${method} that was stored although its answer was lost`, async () => {
    await a.registry.instances.register('r', { ...ENDPOINT, id: 'x' });
    a.store.failing.add(method);
    a.store.failure = () => databaseUnavailable(new Error('connection reset'));
    a.store.losesAnswers = true;
    const change = {
      'instances.save': () => a.registry.instances.register('r', { ...ENDPOINT, id: 'y' }),
      'instances.delete': () => a.registry.instances.deregister('r', 'x'),
      'templates.save': () => a.registry.templates.change('r', { timeout: 7 }),
    }[method];
    assert.is(await codeOf(change()), 'DATABASE_UNAVAILABLE');
    a.store.failing.clear();
    await pass(500);
    await pass(5_000);
    assert.equal(a.definitions, await database.instances.list());
    assert.equal(a.registry.active.settings('r'), (await database.templates.list())[0]);
    assert.is(a.changes.length, 3);
  });
}

test('a reload checks a few definitions per turn, and those in force not again', async () => {
  const value = { name: 'D', description: 'D', version: '1.0.0' };
  for (let n = 0; n < 10 * TASKS_PER_TURN; n += 1)
    await database.definitions.save({ id: `d${n}`, value: { ...value, id: `d${n}` } });
  const { storedDefinitions } = b.registry;
  assert.ok((await turnsOf(() => storedDefinitions.read())) >= 9);
  await b.registry.catchUp();
  await database.definitions.save({ id: 'd0', value: { ...value, id: 'd0', name: 'other' } });
  const [first, second] = await storedDefinitions.read();
  assert.equal([first?.name, storedDefinitions.get('d0').name], ['other', 'D']);
  assert.is(second, storedDefinitions.get('d1'));
});

test('a reload starts, changes and ends a few instances per turn of the event loop', async () => {
  const ids = Array.from({ length: 120 }, (_, index) => `i${index}`);
  const fullest: number[] = [];
  const reload = async () => {
    await pass(500);
    b.storeChanges$.next({ kind: 'changed' });
    fullest.push(await fullestTurn(b));
    assert.equal(b.definitions, a.definitions);
  };
  for (const id of ids) await a.registry.instances.register('r', { ...ENDPOINT, id });
  await reload();
  for (const id of ids) await a.registry.instances.change('r', id, { weight: 2 });
  await reload();
  for (const id of ids) await a.registry.instances.deregister('r', id);
  await reload();
  // The first turn of the starts has a change of the template, too.
  const most = [1 + TASKS_PER_TURN / START_TASKS, TASKS_PER_TURN, TASKS_PER_TURN];
  assert.equal(
    fullest.map((count, index) => count > 0 && count <= (most[index] ?? 0)),
    [true, true, true],
    `${fullest}`,
  );
});

test.run();

const idsOn = ({ definitions }: Node) => definitions.map(({ id }) => id);

/** Notifies the node of a change, long enough after the last reload. */
async function received(node: Node): Promise<void> {
  await pass(500);
  await node.emitChange();
}

/** The most registry events of the node in one of the next 40 turns of the event loop. */
async function fullestTurn(node: Node): Promise<number> {
  let most = 0;
  for (let left = 40; left > 0; left -= 1) {
    const before = node.changes.length;
    await turn();
    most = Math.max(most, node.changes.length - before);
  }
  return most;
}
