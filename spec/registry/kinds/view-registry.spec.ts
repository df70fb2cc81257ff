// What bounds the views of a registry.

import * as assert from 'uvu/assert';
import { hasCode } from '../../../src/domain/errors/errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { NO_NAMES, type ViewDefinition } from '../../../src/domain/views/view.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { ViewRegistry } from '../../../src/registry/kinds/view-registry.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('view registry');

function setUp(): ViewRegistry {
  const deps = { store: new MemoryStore(), clock: systemClock, emit: () => {}, fleet: { has: () => false } };
  return new ViewRegistry(deps, {
    change: (work) => work(),
    reload: async () => {},
    forceReload: async () => {},
    advance: (revision) => revision !== undefined,
    isClosed: () => false,
  });
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

test.run();
