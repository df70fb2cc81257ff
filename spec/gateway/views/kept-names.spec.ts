// The names that a view gives, which are stored, so that they stay those of the same tools and prompts.

import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { becomes, until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { alarmsOf, settled } from '../../helpers/time/simulated-time.ts';

const test = suite('names that a view keeps');

test('names that are given while others are being stored are stored, too', async () => {
  const store = new MemoryStore();
  const gateway = await createGateway({ store });
  const { save } = store.views;
  const released = Promise.withResolvers<void>();
  let saves = 0;
  try {
    await gateway.views.put({ id: 'v', from: [{ template: 'a' }] });
    const handler = ({ method }: { readonly method: string }) => {
      if (method === 'tools/list') return { tools: [{ name: 'search', inputSchema: { type: 'object' } }] };
      if (method === 'prompts/list') return { prompts: [{ name: 'greet' }] };
      throw Object.assign(new Error('not offered'), { code: -32_601 });
    };
    await gateway.register('a', { id: 'one', handler }, { waitMs: 5_000 });
    store.views.save = async (...given) => {
      saves += 1;
      await released.promise;
      return save(...given);
    };
    await gateway.list('v', 'tools');
    await until(() => saves === 1, 'the name of the tool is being stored');
    await gateway.list('v', 'prompts');
    released.resolve();
    await becomes(() => saves, 2, 2_000);
    const [view] = await store.views.list();
    assert.equal(view?.names, { tools: { search: 'a/search' }, prompts: { greet: 'a/greet' } });
  } finally {
    released.resolve();
    await gateway.close({ graceMs: 0 });
  }
});

test('a name that could not be stored is stored 5 s later', async () => {
  const { clock, ring } = alarmsOf(5_000);
  const store = new MemoryStore();
  const gateway = await createGateway({ store, clock });
  const { save } = store.views;
  try {
    await gateway.views.put({ id: 'v', from: [{ template: 'a' }] });
    const tools = [{ name: 'search', inputSchema: { type: 'object' } }];
    await gateway.register('a', { id: 'one', handler: () => ({ tools }) });
    let isAway = true;
    let refused = 0;
    store.views.save = async (...given) => {
      if (!isAway) return save(...given);
      refused += 1;
      throw databaseUnavailable(new Error('away'), 'no');
    };
    await gateway.list('v', 'tools');
    await until(() => refused === 1, 'the name is being stored');
    isAway = false;
    await settled();
    ring();
    await becomes(async () => (await store.views.list())[0]?.names.tools, { search: 'a/search' }, 2_000);
  } finally {
    await gateway.close({ graceMs: 0 });
  }
});

test('a gateway that closes does not wait to store a name again', async () => {
  const { clock, waiting } = alarmsOf(5_000);
  let added = () => 0;
  const store = new MemoryStore();
  const gateway = await createGateway({ store, clock });
  try {
    await gateway.views.put({ id: 'v', from: [{ template: 'a' }] });
    const tools = [{ name: 'search', inputSchema: { type: 'object' } }];
    await gateway.register('a', { id: 'one', handler: () => ({ tools }) });
    store.views.save = () => Promise.reject(databaseUnavailable(new Error('away'), 'no'));
    const before = new Set(waiting);
    added = () => [...waiting].filter((each) => !before.has(each)).length;
    await gateway.list('v', 'tools');
    await becomes(added, 1);
  } finally {
    await gateway.close({ graceMs: 0 });
  }
  assert.is(added(), 0);
});

test('a name that clients have seen stays when the view changes before it is stored', async () => {
  const store = new MemoryStore();
  const gateway = await createGateway({ store });
  const { save } = store.views;
  const tools = [{ name: 'search', inputSchema: { type: 'object' } }];
  const register = (template: string) =>
    gateway.register(template, { id: template, handler: () => ({ tools }) }, { waitMs: 5_000 });
  const namesIn = async (view: string) => (await gateway.list(view, 'tools')).items.map(({ name }) => name);
  const before = [{ template: 'a' }];
  const after = [{ template: 'b' }, { template: 'a' }];
  const expected = ['b__search', 'search'];
  try {
    for (const id of ['changed-here', 'changed-elsewhere']) await gateway.views.put({ id, from: before });
    await register('a');

    // The database does not take the name, and an admin changes the view here.
    let refused = 0;
    store.views.save = async () => {
      refused += 1;
      throw databaseUnavailable(new Error('away'), 'no');
    };
    assert.equal(await namesIn('changed-here'), ['search']);
    await until(() => refused === 1, 'the name is being stored');
    await settled();
    store.views.save = save;
    await register('b');
    await gateway.views.put({ id: 'changed-here', from: after });
    assert.equal(await namesIn('changed-here'), expected);

    // Another node changes the view while the name is being stored.
    let saves = 0;
    store.views.save = async (view, stored) => {
      saves += 1;
      if (saves === 1 && stored !== null) {
        const id = stored.definition.id;
        await save(
          { ...stored, definition: { id, from: after }, updatedAt: new Date().toISOString() },
          stored,
        );
      }
      return save(view, stored);
    };
    assert.equal(await namesIn('changed-elsewhere'), ['search']);
    await becomes(() => saves, 2, 2_000);
    await settled();
    assert.equal(await namesIn('changed-elsewhere'), expected);
    const stored = (await store.views.list()).find(({ definition }) => definition.id === 'changed-elsewhere');
    assert.equal(stored?.names.tools, { search: 'a/search' });
  } finally {
    await gateway.close({ graceMs: 0 });
  }
});

test('a tool may have any name, such as __proto__', async () => {
  const store = new MemoryStore();
  const gateway = await createGateway({ store });
  try {
    const definition = { id: 'v', from: [{ template: 'a' }, { template: 'b' }] };
    await gateway.views.put(definition);
    const tools = [{ name: '__proto__', inputSchema: { type: 'object' } }];
    const add = async (template: string) => {
      await gateway.register(template, { id: 'one', handler: () => ({ tools }) }, { waitMs: 5_000 });
      return (await gateway.list('v', 'tools')).items.map(({ name }) => name);
    };
    assert.equal(await add('a'), ['__proto__']);
    await becomes(async () => (await store.views.list())[0]?.names.tools, { ['__proto__']: 'a/__proto__' });
    await gateway.views.put({ ...definition, title: 'V' });
    assert.equal(await add('b'), ['__proto__', 'b____proto__']);
  } finally {
    await gateway.close({ graceMs: 0 });
  }
});

test.run();
