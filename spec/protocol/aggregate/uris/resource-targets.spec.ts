// What the templates of one server list, as it is learned for URIs. Where URIs lead is in
// aggregate-backends.spec.ts and view-updates.spec.ts.

import * as assert from 'uvu/assert';
import { LearnedUris } from '../../../../src/protocol/aggregate/uris/learned-uris.ts';
import { ResourceTargets } from '../../../../src/protocol/aggregate/uris/resource-targets.ts';
import { collectGarbage } from '../../../helpers/garbage.ts';
import { suite } from '../../../helpers/suite.ts';
import { passTurns, schedulerWith, untimedScheduler } from '../../../helpers/time/turns.ts';
import { CLIENT } from '../../listing-backends.ts';

const test = suite('targets of URIs');

test('lists that did not change are read once, and changed ones again', async () => {
  let reads = 0;
  const listing = (...uris: string[]) =>
    uris.map((uri) => ({
      get uri() {
        reads += 1;
        return uri;
      },
    }));
  const lists = new Map([
    ['a', listing('x:1', 'x:2')],
    ['b', listing('x:2')],
  ]);
  const targets = new ResourceTargets({
    lists: {
      offers: () => true,
      announces: () => false,
      gather: async (list) =>
        list === 'resources' ? [...lists].map(([template, items]) => ({ template, items })) : [],
    },
    templates: () => ['a', 'b'],
    scheduler: untimedScheduler(),
  });
  const ownerOf = async (uri: string) =>
    (await targets.targetOf(uri, CLIENT, () => Promise.resolve()))?.template;
  assert.is(await ownerOf('x:2'), 'a');
  for (let times = 0; times < 3; times += 1) assert.is(await ownerOf('x:unknown'), undefined);
  assert.is(reads, 3);
  lists.set('a', listing('x:1'));
  assert.equal([await ownerOf('x:unknown'), await ownerOf('x:2'), reads], [undefined, 'b', 5]);
  lists.set('a', listing('x:1', 'x:2'));
  assert.equal([await ownerOf('x:unknown'), await ownerOf('x:2'), reads], [undefined, 'a', 8]);
});

test('what one long list has pushed out is known again when its own list is read again', async () => {
  const of = (field: string, text: string) =>
    Array.from({ length: 30_000 }, (_, index) => ({ [field]: `${text}${index}` }));
  const all = new Map([
    ['resources', [{ template: 'a', items: of('uri', 'file:///r') }]],
    ['resourceTemplates', [{ template: 'b', items: of('uriTemplate', 'other:{x}/') }]],
  ]);
  const gather = async (list: string) => all.get(list) ?? [];
  const targets = new ResourceTargets({
    lists: { offers: () => true, announces: () => false, gather },
    templates: () => ['a', 'b'],
    scheduler: untimedScheduler(),
  });
  for (const list of ['resources', 'resourceTemplates', 'resources'] as const)
    await targets.learn(list, await gather(list), CLIENT);
  const found = await targets.targetOf('file:///r5', CLIENT, () => Promise.resolve());
  assert.equal(found, { template: 'a', uri: 'file:///r5' });
});

test('lists that are learned at the same time are learned once', async () => {
  let visits = 0;
  const scheduler = schedulerWith({
    each: async <T>(items: Iterable<T>, visit: (item: T) => unknown) => {
      for (const item of items) {
        visits += 1;
        visit(item);
        await passTurns(1);
      }
    },
  });
  const targets = new ResourceTargets({
    lists: { offers: () => true, announces: () => false, gather: async () => [] },
    templates: () => ['a'],
    scheduler,
  });
  const items = [{ name: 't', inputSchema: {}, _meta: { ui: { resourceUri: 'ui://a/page' } } }];
  const gathered = [{ template: 'a', items }];
  await Promise.all(Array.from({ length: 100 }, () => targets.learn('tools', gathered, CLIENT)));
  assert.ok(visits > 0 && visits < 10, `${visits} visits`);
});

test('long lists are learned and shown in many tasks, and what is learned meanwhile waits', async () => {
  const tasks: number[] = [];
  const scheduler = schedulerWith({
    each: async <T>(items: Iterable<T>, visit: (item: T) => unknown) => {
      let count = 0;
      for (const item of items) {
        visit(item);
        count += 1;
        await passTurns(1);
      }
      tasks.push(count);
    },
  });
  const targets = new ResourceTargets({
    lists: { offers: () => true, announces: () => false, gather: async () => [] },
    templates: () => ['a', 'b'],
    scheduler,
  });
  const items = Array.from({ length: 10_000 }, (_, index) => ({ uri: `x:${index}` }));
  const own = { uri: 'x:1' };
  const learning = targets.learn('resources', [{ template: 'a', items }], CLIENT);
  await targets.learn('resources', [{ template: 'b', items: [own] }], CLIENT);
  await learning;
  const all = [...items, own].map((item, index) => ({ template: index < items.length ? 'a' : 'b', item }));
  const shown = await targets.shownItems('resources', all, CLIENT.owner);
  const ofBoth = ['a', 'b'].map((template) => targets.shown(template, 'x:1', CLIENT.owner));
  assert.equal([shown.length, shown[1]?.uri, shown.at(-1)?.uri], [items.length + 1, ...ofBoth]);
  assert.is.not(ofBoth[0], ofBoth[1]);
  assert.equal(tasks, [200, 200, 1, 1, 201]);
});

test('a URI is compared with long URI templates in a few steps for each of its characters', async () => {
  const long = 'a'.repeat(1_000);
  const items = Array.from({ length: 1_000 }, (_, at) => ({ uriTemplate: `a{x}${long}b${long}{y${at}}` }));
  const gathered = [{ template: 'a', items }];
  const targets = new ResourceTargets({
    lists: {
      offers: () => true,
      announces: () => false,
      gather: async (list) => (list === 'resourceTemplates' ? gathered : []),
    },
    templates: () => ['a', 'b'],
    scheduler: untimedScheduler(),
  });
  const templateOf = async (uri: string) =>
    (await targets.targetOf(uri, CLIENT, () => Promise.resolve()))?.template;
  assert.is(await templateOf(`a${long}${long}b${long}!`), 'a');
  assert.is(await templateOf('a'.repeat(8_000)), undefined);
});

test('long URIs are remembered as long as they take little memory', async () => {
  const targets = new ResourceTargets({
    lists: { offers: () => true, announces: () => false, gather: async () => [] },
    templates: () => ['a', 'b'],
    scheduler: untimedScheduler(),
  });
  const long = 'x'.repeat(8_000);
  const learn = (from: number, count: number, text: string) => {
    const items = Array.from({ length: count }, (_, at) => ({ uri: `f:${from + at}${text}` }));
    return targets.learn(
      'resources',
      [
        { template: 'a', items },
        { template: 'b', items: [] },
      ],
      CLIENT,
    );
  };
  const ownerOf = async (uri: string) =>
    (await targets.targetOf(uri, CLIENT, () => Promise.resolve()))?.template;
  await learn(0, 1_500, long);
  assert.is(await ownerOf(`f:0${long}`), 'a');
  await learn(0, 2_000, long);
  assert.equal([await ownerOf(`f:0${long}`), await ownerOf(`f:1999${long}`)], [undefined, 'a']);
  await learn(0, 45_000, '');
  assert.equal([await ownerOf('f:0'), await ownerOf('f:44999')], ['a', 'a']);
});

test('URI templates with very many expressions take little memory', async () => {
  const uriTemplates = Array.from({ length: 250 }, (_, at) => `${at}:${'{a}x'.repeat(500)}`);
  const items = uriTemplates.map((uriTemplate) => ({ uriTemplate }));
  const learned = new LearnedUris({ scheduler: untimedScheduler() });
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  await learned.learn('resourceTemplates', [{ template: 't', items }], true);
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 2_000_000, `${kept} bytes`);
  assert.equal(learned.patternsOf('t', 'x'), []);
});

test.run();
