// All templates as one server: aggregate names, owners of names and resources, and acceptable items.

import fc from 'fast-check';
import { EMPTY, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { AggregateDirectory } from '../../../src/protocol/aggregate/aggregate-directory.ts';
import { AggregateLists } from '../../../src/protocol/aggregate/aggregate-lists.ts';
import {
  aggregateName,
  MOST_NAME_CHARACTERS,
  mayBeCut,
  splitName,
} from '../../../src/protocol/aggregate/aggregate-names.ts';
import { suite } from '../../helpers/suite.ts';
import { CLIENT, ListingBackends, shownTool } from '../listing-backends.ts';

const test = suite('aggregate directory');

const LONG = 'l'.repeat(100);

function setUp(visible = ['a', 'b']) {
  const a = new ListingBackends({
    tools: [{ name: 'read', title: 'A' }, { name: LONG }],
    prompts: [{ name: 'ask' }],
    resources: [{ uri: 'file:///both', name: 'both' }],
    resourceTemplates: [{ uriTemplate: 'a://{id}/data', name: 'data' }],
  });
  const b = new ListingBackends({
    tools: [{ name: 'read' }],
    resources: [{ uri: 'file:///both' }, { uri: 'b:1' }],
  });
  const of = (template: string) => (template === 'a' ? a : b);
  const directory = new AggregateDirectory(new AggregateLists(of, EMPTY), () => visible);
  const named = (aggregated: string) => directory.ownerOfName(aggregated, 'tools', CLIENT);
  const resource = (uri: string) => directory.ownerOfResource(uri, CLIENT);
  return { directory, named, resource, a, b };
}

test('lists everything under aggregate names', async () => {
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

test('resolves a shortened name, and a whole name that only looks shortened', async () => {
  const { named } = setUp();
  assert.equal(await named(aggregateName({ template: 'a', name: LONG })), { template: 'a', name: LONG });
  const whole = `b__${'t'.repeat(40)}_0123abcd`;
  assert.equal(await named(whole), { template: 'b', name: whole.slice(3) });
});

test('lists a name once, for the first item that has it', async () => {
  const { directory, named, a } = setUp();
  const cut = aggregateName({ template: 'a', name: LONG });
  a.lists = {
    tools: [
      { name: LONG, title: '1' },
      { name: LONG, title: '2' },
      { name: cut.slice(3), title: '3' },
    ],
  };
  const listed = await directory.list('tools', CLIENT);
  const shown = listed.map(({ name, title }) => `${name} ${title}`);
  assert.equal(shown, [`${cut} 1`, 'b__read undefined']);
  assert.equal(await named(cut), { template: 'a', name: LONG });
});

test('assigns no resource to a template without instances', async () => {
  const { resource, a } = setUp();
  assert.is(await resource('file:///both'), 'a');
  a.peers = () => [];
  assert.is(await resource('file:///both'), 'b');
  assert.is(await resource('a://7/data'), undefined);
});

test('assigns a resource to the first template that lists it, else by URI template', async () => {
  const { resource } = setUp();
  assert.is(await resource('b:1'), 'b');
  assert.is(await resource('file:///both'), 'a');
  assert.is(await resource('a://7/data'), 'a');
  for (const unknown of ['a://7/dat', 'a:/7/data', 'a://data', 'c:1'])
    assert.is(await resource(unknown), undefined);
});

test('assigns a resource to the template that lists it now', async () => {
  const { directory, resource, a, b } = setUp();
  assert.equal([await resource('file:///both'), await resource('a://7/data')], ['a', 'a']);
  a.lists = { resources: [{ uri: 'b:1' }] };
  b.lists = { ...b.lists, resourceTemplates: [{ uriTemplate: 'a://{id}/data' }] };
  await Promise.all([directory.list('resources', CLIENT), directory.list('resourceTemplates', CLIENT)]);
  const owners = await Promise.all(['file:///both', 'a://7/data', 'b:1'].map(resource));
  assert.equal(owners, ['b', 'b', 'a']);
  b.instead = throwError(() => new Error('dead'));
  const other = { ...CLIENT, owner: { id: 'user:bob' } };
  assert.equal(await directory.list('resourceTemplates', other), []);
  assert.is(await directory.ownerOfResource('a://7/data', other), 'b', 'its list could not be read');
});

test('assigns an unlisted resource to the only template', async () => {
  assert.is(await setUp(['b']).resource('c:1'), 'b');
});

const templateNames = fc.stringMatching(/^[a-z][a-z0-9-]{0,127}$/);
const toolNames = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 128 }),
);

test('joins and splits names, also of tools with underscores', () => {
  assert.is(aggregateName({ template: 'files', name: 'read__all' }), 'files__read__all');
  assert.equal(splitName('files__read__all'), { template: 'files', name: 'read__all' });
  assert.equal(splitName('files____'), { template: 'files', name: '__' });
  for (const none of ['', 'files', 'files_read', '__read']) assert.is(splitName(none), undefined);
});

test('makes a name that is never longer than clients accept, and is stable', () => {
  fc.assert(
    fc.property(templateNames, toolNames, (template, name) => {
      const aggregated = aggregateName({ template, name });
      assert.ok(aggregated.length <= MOST_NAME_CHARACTERS && aggregated.isWellFormed());
      assert.is(aggregated, aggregateName({ template, name }));
      if (aggregated === `${template}__${name}`) assert.equal(splitName(aggregated), { template, name });
      else assert.ok(mayBeCut(aggregated), aggregated);
    }),
  );
});

test('gives different aggregate names to different long names', () => {
  const long = 'x'.repeat(100);
  const cut = [
    aggregateName({ template: 'a', name: `${long}1` }),
    aggregateName({ template: 'a', name: `${long}2` }),
    aggregateName({ template: 'y'.repeat(60), name: 'read' }),
    aggregateName({ template: `${'y'.repeat(60)}z`, name: 'read' }),
  ];
  assert.is(new Set(cut).size, 4);
  assert.equal(cut, [
    ...cut.slice(0, 2).map((name) => `a__${'x'.repeat(52)}${name.slice(-9)}`),
    ...cut.slice(2).map((name) => `${'y'.repeat(24)}__read${name.slice(-9)}`),
  ]);
});

test.run();
