// Who owns what among all templates: names, cut names, resources and what fits a URI template.

import * as assert from 'uvu/assert';
import { JoinedDirectory } from '../../src/protocol/joined-directory.ts';
import { JoinedLists } from '../../src/protocol/joined-lists.ts';
import { joinedName } from '../../src/protocol/joined-names.ts';
import { suite } from '../helpers/suite.ts';
import { CLIENT, ListingBackends } from './listing-backends.ts';

const test = suite('joined directory');

const LONG = 'l'.repeat(100);

function staged(visible = ['a', 'b']) {
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
  const directory = new JoinedDirectory({ lists: new JoinedLists(of), templates: () => visible });
  const named = (joined: string) => directory.ownerOfName(joined, 'tools', CLIENT);
  const resource = (uri: string) => directory.ownerOfResource(uri, CLIENT);
  return { directory, named, resource, all };
}

test('lists everything under joined names', async () => {
  const { directory } = staged();
  assert.equal(await directory.list('tools', CLIENT), [
    { name: 'a__read', title: 'A' },
    { name: joinedName({ template: 'a', name: LONG }) },
    { name: 'b__read' },
  ]);
  assert.equal(await directory.list('prompts', CLIENT), [{ name: 'a__ask' }]);
  assert.equal(await directory.list('resources', CLIENT), [
    { uri: 'file:///both', name: 'both' },
    { uri: 'file:///both' },
    { uri: 'b:1' },
  ]);
});

test('finds the owner of a name without a look at the lists', async () => {
  const { named, all } = staged();
  assert.equal(await named('b__read'), { template: 'b', name: 'read' });
  assert.equal(await named('b__not__listed'), { template: 'b', name: 'not__listed' });
  assert.is(all.get('a')?.asked.length, 0);
});

test('looks up a name that may be a cut one', async () => {
  const { named } = staged();
  assert.equal(await named(joinedName({ template: 'a', name: LONG })), { template: 'a', name: LONG });
  const whole = `b__${'t'.repeat(40)}_0123abcd`;
  assert.equal(await named(whole), { template: 'b', name: whole.slice(3) });
});

test('knows nothing of templates that the caller may not use', async () => {
  const { named, resource } = staged(['b']);
  assert.is(await named('a__read'), undefined);
  assert.is(await named(joinedName({ template: 'a', name: LONG })), undefined);
  assert.is(await named('read'), undefined);
  assert.is(await resource('file:///both'), 'b');
});

test('gives a resource to the first who lists it, then to whose template fits', async () => {
  const { resource } = staged();
  assert.is(await resource('b:1'), 'b');
  assert.is(await resource('file:///both'), 'a');
  assert.is(await resource('a://7/data'), 'a');
  for (const unknown of ['a://7/dat', 'a:/7/data', 'a://data', 'c:1'])
    assert.is(await resource(unknown), undefined);
});

test('asks the only template there is for what nobody lists', async () => {
  assert.is(await staged(['b']).resource('c:1'), 'b');
});

test.run();
