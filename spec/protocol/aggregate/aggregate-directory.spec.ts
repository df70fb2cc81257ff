// Who owns what among all templates: names, cut names, resources and what fits a URI template.

import * as assert from 'uvu/assert';
import { AggregateDirectory } from '../../../src/protocol/aggregate/aggregate-directory.ts';
import { AggregateLists } from '../../../src/protocol/aggregate/aggregate-lists.ts';
import { aggregateName } from '../../../src/protocol/aggregate/aggregate-names.ts';
import { suite } from '../../helpers/suite.ts';
import { CLIENT, ListingBackends, shownTool } from '../listing-backends.ts';

const test = suite('joined directory');

const LONG = 'l'.repeat(100);

function setUp(visible = ['a', 'b']) {
  const all = new Map([
    [
      'a',
      new ListingBackends({
        tools: [{ name: 'read', title: 'A' }, { name: LONG }],
        prompts: [{ name: 'ask' }],
        resources: [{ uri: 'file:///both', name: 'both' }],
        resourceTemplates: [{ uriTemplate: 'a://{id}/data', name: 'data' }],
      }),
    ],
    [
      'b',
      new ListingBackends({
        tools: [{ name: 'read' }],
        resources: [{ uri: 'file:///both' }, { uri: 'b:1' }],
      }),
    ],
  ]);
  const of = (template: string) => all.get(template) ?? new ListingBackends({});
  const directory = new AggregateDirectory({ lists: new AggregateLists(of), templates: () => visible });
  const named = (joined: string) => directory.ownerOfName(joined, 'tools', CLIENT);
  const resource = (uri: string) => directory.ownerOfResource(uri, CLIENT);
  return { directory, named, resource, all };
}

test('lists everything under joined names', async () => {
  const { directory } = setUp();
  assert.equal(await directory.list('tools', CLIENT), [
    { ...shownTool('a__read'), title: 'A' },
    shownTool(aggregateName({ template: 'a', name: LONG })),
    shownTool('b__read'),
  ]);
  assert.equal(await directory.list('prompts', CLIENT), [{ name: 'a__ask' }]);
  assert.equal(await directory.list('resources', CLIENT), [
    { uri: 'file:///both', name: 'both' },
    { uri: 'b:1', name: 'b:1' },
  ]);
});

test('finds the owner of a name without a look at the lists', async () => {
  const { named, all } = setUp();
  assert.equal(await named('b__read'), { template: 'b', name: 'read' });
  assert.equal(await named('b__not__listed'), { template: 'b', name: 'not__listed' });
  assert.is(all.get('a')?.asked.length, 0);
});

test('looks up a name that may be a cut one', async () => {
  const { named } = setUp();
  assert.equal(await named(aggregateName({ template: 'a', name: LONG })), { template: 'a', name: LONG });
  const whole = `b__${'t'.repeat(40)}_0123abcd`;
  assert.equal(await named(whole), { template: 'b', name: whole.slice(3) });
});

test('looks a name up once that only looks like a cut one', async () => {
  const { named, all } = setUp();
  const name = `${'t'.repeat(40)}_0123abcd`;
  const b = all.get('b');
  assert.ok(b);
  b.lists = { tools: [{ name }] };
  assert.equal(await named(`b__${name}`), { template: 'b', name });
  const { length } = b.asked;
  await named(`b__${name}`);
  assert.is(b.asked.length, length);
});

test('lists a name once, and means the first who has it', async () => {
  const { directory, named, all } = setUp();
  const a = all.get('a');
  assert.ok(a);
  const cut = aggregateName({ template: 'a', name: LONG });
  a.lists = {
    tools: [
      { name: LONG, title: '1' },
      { name: LONG, title: '2' },
      { name: cut.slice(3), title: '3' },
    ],
  };
  const listed = await directory.list('tools', CLIENT);
  assert.equal(
    listed.map(({ name, title }) => [name, title]),
    [
      [cut, '1'],
      ['b__read', undefined],
    ],
  );
  assert.equal(await named(cut), { template: 'a', name: LONG });
});

test('gives no resource to a template where nobody is any more', async () => {
  const { resource, all } = setUp();
  assert.is(await resource('file:///both'), 'a');
  const a = all.get('a');
  assert.ok(a);
  a.peers = () => [];
  assert.is(await resource('file:///both'), 'b');
  assert.is(await resource('a://7/data'), undefined);
});

test('knows nothing of templates that the caller may not use', async () => {
  const { named, resource } = setUp(['b']);
  assert.is(await named('a__read'), undefined);
  assert.is(await named(aggregateName({ template: 'a', name: LONG })), undefined);
  assert.is(await named('read'), undefined);
  assert.is(await resource('file:///both'), 'b');
});

test('gives a resource to the first who lists it, then to whose template fits', async () => {
  const { resource } = setUp();
  assert.is(await resource('b:1'), 'b');
  assert.is(await resource('file:///both'), 'a');
  assert.is(await resource('a://7/data'), 'a');
  for (const unknown of ['a://7/dat', 'a:/7/data', 'a://data', 'c:1'])
    assert.is(await resource(unknown), undefined);
});

test('asks the only template there is for what nobody lists', async () => {
  assert.is(await setUp(['b']).resource('c:1'), 'b');
});

test.run();
