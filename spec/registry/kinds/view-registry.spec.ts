// What bounds the views of a registry, what another node changes while one is deleted, and how many are put in force.

import * as assert from 'uvu/assert';
import { hasCode } from '../../../src/domain/errors/errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { NO_NAMES, type StoredView, type ViewDefinition } from '../../../src/domain/views/view.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { MAX_CHANGE_ROUNDS } from '../../../src/persistence/until-taken.ts';
import { etagOf, type ViewCondition, ViewRegistry } from '../../../src/registry/kinds/view-registry.ts';
import { RegistryChanges } from '../../../src/registry/registry-changes.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { turnsOf, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('view registry');

function setUp(store = new MemoryStore()): ViewRegistry {
  const timing = { clock: systemClock, scheduler: untimedScheduler() };
  const approvals = { setView: () => {}, forget: async () => {} };
  const deps = { store, approvals, ...timing, emit: () => {}, fleet: { templates: { has: () => false } } };
  const apply = async () => views.apply(await store.views.list());
  const changes = new RegistryChanges({ store, ...timing, emit: () => {}, apply });
  const views: ViewRegistry = new ViewRegistry(deps, changes);
  return views;
}

const MIB = 1024 * 1024;
/** Takes 8 MiB, or as many as `mib`: two bytes for a character. */
const large = (id: string, mib = 8): ViewDefinition => ({
  id,
  from: [{ template: 't' }],
  instructions: 'a'.repeat((mib * MIB) / 2),
});
const put = (views: ViewRegistry, definition: ViewDefinition) => views.put(definition, { names: NO_NAMES });

test('bounds the memory of all large views, whatever was replaced and deleted', async () => {
  const views = setUp();
  for (let index = 0; index < 7; index += 1) await put(views, large(`v${index}`));
  const isFull = async (definition: ViewDefinition) => {
    const thrown = await put(views, definition).catch((error: unknown) => error);
    assert.ok(hasCode(thrown, 'REGISTRY_FULL'), String(thrown));
    assert.match(String(thrown), /64 MiB of large views/);
    assert.is(views.find(definition.id)?.definition.instructions?.length, before.get(definition.id));
  };
  const before = new Map(
    views.list().map(({ definition }) => [definition.id, definition.instructions?.length] as const),
  );
  await isFull(large('more'));
  await isFull(large('v1', 16));
  await put(views, { id: 'small', from: [{ template: 't' }] });
  await put(views, large('v1', 7));
  await put(views, large('v2', 1));
  await put(views, large('more'));
  await views.delete('v3');
  await put(views, large('again'));
  await isFull(large('last'));
});

test('counts the names that a view has given', async () => {
  const views = setUp();
  const names = { ...NO_NAMES, tools: { a: 'b'.repeat(33 * MIB) } };
  const thrown = await views
    .put({ id: 'v', from: [{ template: 't' }] }, { names })
    .catch((error: unknown) => error);
  assert.ok(hasCode(thrown, 'REGISTRY_FULL'));
});

test('a view that another node changes during its deletion is judged again, as it is then', async () => {
  const store = new MemoryStore();
  const [views, others] = [setUp(store), setUp(store)];
  const of = (title: string): ViewDefinition => ({ id: 'v', title, from: [{ template: 't' }] });
  const { view } = await put(views, of('first'));
  const judged: (string | undefined)[] = [];
  /** The error of a deletion, during which another node changes the view once; only views with a title may be deleted. */
  const deletion = async (next: string, condition: ViewCondition = {}): Promise<unknown> => {
    const admit = async (before: ViewDefinition | undefined) => {
      judged.push(before?.title);
      if (before?.title === '') throw new Error('may not delete this one');
      if (before?.title !== next) await put(others, of(next));
    };
    return views.delete('v', { ...condition, admit }).catch((thrown: unknown) => thrown);
  };
  assert.ok(hasCode(await deletion('second', { ifMatch: etagOf(view) }), 'PRECONDITION_FAILED'));
  assert.match(String(await deletion('')), /may not delete this one/);
  assert.equal(judged, ['first', 'second', 'second', '']);
  assert.is((await store.views.list()).length, 1);
});

test('names are stored in the view that another node has just changed, and not in one that it has deleted', async () => {
  const store = new MemoryStore();
  const [views, others] = [setUp(store), setUp(store)];
  const of = (title: string): ViewDefinition => ({ id: 'v', title, from: [{ template: 't' }] });
  const stored = async () =>
    (await store.views.list()).map(({ definition, names }) => [definition.title, names]);
  await put(views, of('first'));
  await put(others, of('second'));
  const give = (name: string) =>
    views.saveNames('v', ({ tools, prompts }) => ({ prompts, tools: { ...tools, [name]: `t/${name}` } }));
  await give('a');
  assert.equal(await stored(), [['second', { tools: { a: 't/a' }, prompts: {} }]]);
  await others.delete('v');
  await give('b');
  assert.equal(await stored(), []);
});

test('names that cannot be stored because other nodes change the view again and again are not given up in silence', async () => {
  const store = new MemoryStore();
  const [views, others] = [setUp(store), setUp(store)];
  const of = (title: number): ViewDefinition => ({ id: 'v', title: `${title}`, from: [{ template: 't' }] });
  await put(views, of(0));
  const { save } = store.views;
  let changes = 0;
  store.views.save = async (view, before) => {
    if (view.names.tools.a === undefined) return save(view, before);
    changes += 1;
    await put(others, of(changes));
    return save(view, before);
  };
  const given = views.saveNames('v', ({ prompts }) => ({ prompts, tools: { a: 't/a' } }));
  assert.equal([await codeOf(given), changes], ['DATABASE_UNAVAILABLE', MAX_CHANGE_ROUNDS]);
});

test('1,000 views of another node are compared and put in force in several turns', async () => {
  const views = setUp();
  const stored = Array.from({ length: 1_000 }, (_, n): StoredView => {
    return {
      definition: { id: `v${n}`, from: [{ template: 't' }] },
      names: NO_NAMES,
      source: 'api',
      updatedAt: '',
    };
  });
  for (const reading of ['new', 'the same']) {
    const turns = await turnsOf(() => views.apply(structuredClone(stored)));
    assert.ok(turns >= 30, `${reading}: ${turns} turns`);
  }
  assert.is(views.list().length, 1_000);
});

test.run();
