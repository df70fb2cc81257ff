// Nodes of one database that start at the same time, and import the same registry file.

import * as assert from 'uvu/assert';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { parseRegistryDocument } from '../../src/registry/files/registry-file.ts';
import { importContents } from '../../src/registry/registry-sync.ts';
import { codeOf } from '../helpers/outcome.ts';
import { Node } from '../helpers/stores/nodes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry: nodes with the same file');
const COUNT = 12;
let database = new MemoryStore();
let nodes: Node[] = [];

test.before.each(async () => {
  database = new MemoryStore();
  nodes = Array.from({ length: COUNT }, (_, n) => new Node(`n${n}`, database));
  let operations = 0;
  for (const { store } of nodes)
    store.turns = () => {
      operations += 1;
      return (operations * 7) % 5;
    };
  await Promise.all(nodes.map(({ registry }) => registry.load()));
});
test.after.each(() => Promise.all(nodes.map((node) => node.close())));

const importOn = async (some: readonly Node[], document: object) => {
  const contents = await parseRegistryDocument(JSON.stringify(document), 'r.json');
  const reports = await Promise.all(some.map(({ registry }) => importContents(registry, contents)));
  assert.equal(
    reports.flatMap(({ skipped }) => skipped),
    [],
  );
};
const idsOn = ({ registry }: Node) => registry.views.list().map(({ definition }) => definition.id);

test('each entry and each view is stored once', async () => {
  const instances = Array.from({ length: 20 }, (_, n) => ({
    id: `i${n}`,
    endpoint: `http://127.0.0.1:9/${n}`,
  }));
  const views = { v: { from: [{ template: 't' }] }, w: { from: [{ template: 't' }] } };
  const saved: string[] = [];
  const { saveMany, save } = database.instances;
  const note = (ids: readonly string[], revision: number | undefined) => {
    if (revision !== undefined) saved.push(...ids);
    return revision;
  };
  database.instances.saveMany = async (saves) =>
    note(
      saves.map(({ definition: { id } }) => id),
      await saveMany(saves),
    );
  database.instances.save = async (definition, before) =>
    note([definition.id], await save(definition, before));
  await importOn(nodes, { templates: { t: { instances } }, views });
  assert.equal(saved.toSorted(), instances.map(({ id }) => id).toSorted());
  for (const node of nodes) {
    await node.registry.catchUp();
    assert.equal([node.definitions.length, idsOn(node)], [20, ['v', 'w']]);
  }
  assert.equal(new Set(nodes.map(({ registry }) => registry.views.find('v')?.updatedAt)).size, 1);
});

test('a view that the file no longer has is removed once, and no import fails', async () => {
  const [first] = nodes;
  assert.ok(first);
  await importOn([first], { views: { v: { from: [{ template: 't' }] }, w: { from: [{ template: 't' }] } } });
  await importOn(nodes, { views: { w: { from: [{ template: 't' }] } } });
  for (const node of nodes) assert.equal(idsOn(node), ['w']);
});

test('a view that was made again through the API meanwhile stays', async () => {
  const [first, second] = nodes;
  assert.ok(first && second);
  await importOn([first, second], { views: { v: { from: [{ template: 't' }] } } });
  await second.registry.views.put(
    { id: 'v', from: [{ template: 'u' }] },
    { names: { tools: {}, prompts: {} } },
  );
  await first.registry.views.withdraw('v');
  assert.equal([idsOn(first), first.registry.views.find('v')?.source], [['v'], 'api']);
});

test('a name that another node has just given to a view gets no template', async () => {
  const [first, second] = nodes;
  assert.ok(first && second);
  await second.registry.views.put(
    { id: 'v', from: [{ template: 't' }] },
    { names: { tools: {}, prompts: {} } },
  );
  const register = () =>
    first.registry.instances.register('v', { id: 'a', endpoint: 'http://127.0.0.1:9/mcp' });
  assert.is(await codeOf(register()), 'DUPLICATE_VIEW');
  assert.is(await codeOf(first.registry.templates.ensure('v', { timeout: 5 })), 'DUPLICATE_VIEW');
  assert.is(first.harness.fleet.templates.has('v'), false);
  assert.equal(await database.templates.list(), []);
});

test('a template whose name a view gets during the import is skipped', async () => {
  const [first, second] = nodes;
  assert.ok(first && second);
  const { save } = database.templates;
  database.templates.save = async (change) => {
    const revision = await save(change);
    const names = { tools: {}, prompts: {} };
    if (change.name === 'a')
      await second.registry.views.put({ id: 'v', from: [{ template: 'a' }] }, { names });
    return revision;
  };
  const load_balancer = { timeout: 5 };
  const instances = [{ id: 'i', endpoint: 'http://127.0.0.1:9/mcp' }];
  const document = { templates: { a: { load_balancer, instances }, v: { load_balancer, instances } } };
  const contents = await parseRegistryDocument(JSON.stringify(document), 'r.json');
  const { added, skipped } = await importContents(first.registry, contents);
  const namesOf = (all: readonly { readonly template: string }[]) => all.map(({ template }) => template);
  assert.equal([namesOf(added), namesOf(skipped)], [['a'], ['v']]);
});

test.run();
