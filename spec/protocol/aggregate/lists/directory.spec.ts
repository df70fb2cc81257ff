// An aggregate: its names, owners of names and resources, and acceptable items.

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { ToolRights } from '../../../../src/domain/accounts/rights.ts';
import { TaskScheduler } from '../../../../src/domain/time/task-scheduler.ts';
import {
  aggregateName,
  mayBeFrom,
  mayBeMapped,
  splitName,
} from '../../../../src/protocol/aggregate/aggregate-names.ts';
import { AggregateDirectory } from '../../../../src/protocol/aggregate/lists/directory.ts';
import { suite } from '../../../helpers/suite.ts';
import { aggregateLists, CLIENT, ListingBackends, shownTool } from '../../listing-backends.ts';

const test = suite('aggregate directory');

const LONG = 'l'.repeat(100);

const noSkills = async () => {};

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
  const directory = new AggregateDirectory(
    aggregateLists({ backendsOf: of }),
    () => visible,
    new TaskScheduler(),
  );
  const named = (aggregated: string) => directory.targetOfName(aggregated, 'tools', CLIENT);
  const resource = async (uri: string) => (await directory.uris.targetOf(uri, CLIENT, noSkills))?.template;
  return { directory, named, resource, a, b };
}

/** A name as the list of all templates shows it when it is mapped. */
const shownMapped = (template: string, name: string) => ({
  ...shownTool(aggregateName({ template, name })),
  title: name,
  _meta: { 'stagedoor/name': name },
});

test('lists everything under aggregate names', async () => {
  const { directory } = setUp();
  assert.equal((await directory.listing('tools', CLIENT)).items, [
    { ...shownTool('a__read'), title: 'A' },
    shownMapped('a', LONG),
    shownTool('b__read'),
  ]);
  assert.equal((await directory.listing('prompts', CLIENT)).items, [{ name: 'a__ask' }]);
  assert.equal((await directory.listing('resources', CLIENT)).items, [
    { uri: 'file://a//both', name: 'both' },
    { uri: 'file://b//both', name: 'file:///both' },
    { uri: 'b:1', name: 'b:1' },
  ]);
});

test('keeps the title of an item whose name is mapped, and every other field', async () => {
  const { directory, a } = setUp(['a']);
  const listed = { name: 'read.all', title: 'Read', _meta: { x: 1 }, annotations: { readOnlyHint: true } };
  a.lists = { tools: [listed, { name: 'x.y', annotations: { title: 'X' } }] };
  const [first, second] = (await directory.listing('tools', CLIENT)).items;
  assert.equal(first, {
    ...listed,
    ...shownTool(aggregateName({ template: 'a', name: 'read.all' })),
    _meta: { x: 1, 'stagedoor/name': 'read.all' },
  });
  assert.is(second?.title, undefined);
});

test('has no name of the gateway that a server has given to its item', async () => {
  const { directory, a } = setUp(['a']);
  const forged = { 'stagedoor/name': 'other' };
  a.lists = {
    tools: [
      { name: 'plain', _meta: { x: 1, ...forged } },
      { name: 'bare', _meta: forged },
      { name: 'read.all', _meta: forged },
    ],
    prompts: [{ name: 'ask', _meta: forged }],
  };
  const metaOf = async (list: 'tools' | 'prompts') =>
    (await directory.listing(list, CLIENT)).items.map(({ _meta }) => _meta);
  assert.equal(await metaOf('tools'), [{ x: 1 }, {}, { 'stagedoor/name': 'read.all' }]);
  assert.equal(await metaOf('prompts'), [{}]);
});

test('resolves every name of the list, and no other spelling of it', async () => {
  const { named, directory, a } = setUp();
  const likeMapped = `t_${'0123456789abcdef'}`;
  a.lists = { tools: ['plain', LONG, 'with.dot', 'é', likeMapped].map((name) => ({ name })) };
  const listed = (await directory.listing('tools', CLIENT)).items;
  const owners = await Promise.all(listed.map(({ name }) => named(String(name))));
  assert.equal(
    owners.map((own) => `${own?.template} ${own?.name}`),
    ['a plain', `a ${LONG}`, 'a with.dot', 'a é', `a ${likeMapped}`, 'b read'],
  );
  for (const other of [`a__${LONG}`, 'a__with.dot', 'a__é', `a__${likeMapped}`, 'a__', '__plain'])
    assert.is(await named(other), undefined, other);
});

test('resolves a mapped name that it has not listed yet, or has forgotten', async () => {
  const { named } = setUp();
  assert.equal(await named(aggregateName({ template: 'a', name: LONG })), { template: 'a', name: LONG });
  assert.is(await named(aggregateName({ template: 'b', name: LONG })), undefined);
  assert.is(await named(aggregateName({ template: 'c', name: LONG })), undefined);
});

test('never gives the name of a tool of one template to a tool of another', async () => {
  const victim = { template: `${'v'.repeat(24)}-and-more`, name: `read_${'x'.repeat(40)}` };
  const mapped = aggregateName(victim);
  for (const attacker of ['v'.repeat(24), victim.template.slice(0, 23), 'v']) {
    const taken = new ListingBackends({
      tools: [{ name: mapped.slice(attacker.length + 2) }, { name: mapped }],
    });
    const real = new ListingBackends({ tools: [{ name: victim.name }] });
    const of = (template: string) => (template === attacker ? taken : real);
    const templates = [attacker, victim.template];
    const directory = new AggregateDirectory(
      aggregateLists({ backendsOf: of }),
      () => templates,
      new TaskScheduler(),
    );
    const names = (await directory.listing('tools', CLIENT)).items.map(({ name }) => name);
    assert.equal([names.length, new Set(names).size, names.indexOf(mapped)], [3, 3, 2]);
    assert.equal(await directory.targetOfName(mapped, 'tools', CLIENT), victim);
  }
});

test('lists a name once, for the first item of its template that has it', async () => {
  const { directory, a } = setUp();
  a.lists = {
    tools: [
      { name: LONG, title: '1' },
      { name: LONG, title: '2' },
      { name: '\ud800', title: 'not Unicode' },
    ],
  };
  const listed = (await directory.listing('tools', CLIENT)).items;
  const shown = listed.map(({ name, title }) => `${name} ${title}`);
  assert.equal(shown, [`${aggregateName({ template: 'a', name: LONG })} 1`, 'b__read undefined']);
});

test('assigns no resource to a template without instances', async () => {
  const { resource, a } = setUp();
  assert.is(await resource('file:///both'), 'a');
  a.handshakes = () => [];
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
  await Promise.all([directory.listing('resources', CLIENT), directory.listing('resourceTemplates', CLIENT)]);
  const owners = await Promise.all(['file:///both', 'a://7/data', 'b:1'].map(resource));
  assert.equal(owners, ['b', 'b', 'a']);
  b.instead = throwError(() => new Error('dead'));
  const other = { ...CLIENT, owner: { id: 'user:bob' } };
  assert.equal((await directory.listing('resourceTemplates', other)).items, []);
  assert.is(
    (await directory.uris.targetOf('a://7/data', other, noSkills))?.template,
    'b',
    'its list could not be read',
  );
});

test('assigns an unlisted resource to the only template', async () => {
  assert.is(await setUp(['b']).resource('c:1'), 'b');
});

// Names that nobody may register are included: the rule does not depend on the rule of template names.
const templateNames = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9-]{0,127}$/),
  fc.stringMatching(/^[a-z_]{1,6}$/),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
);
const toolNames = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/),
  fc.stringMatching(/^[a-z_]{1,6}$/),
  fc.stringMatching(/^[a-z_]{0,50}_[0-9a-fA-F]{16}$/),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 128 }),
);
const pairs = fc.record({ template: templateNames, name: toolNames }, { noNullPrototype: true });

test('joins and splits names, also of tools with underscores', () => {
  assert.is(aggregateName({ template: 'files', name: 'read__all' }), 'files__read__all');
  assert.equal(splitName('files__read__all'), { template: 'files', name: 'read__all' });
  assert.equal(splitName('files____'), { template: 'files', name: '__' });
  for (const none of ['', 'files', 'files_read', '__read', 'files__']) assert.is(splitName(none), undefined);
});

test('maps what is too long, has other characters, or looks mapped', () => {
  const digits = (template: string, name: string) =>
    createHash('sha256').update(`${template}\0${name}`).digest('hex').slice(0, 16);
  const table: (readonly [template: string, name: string, mapped: string | undefined])[] = [
    ['files', 'read', undefined],
    ['files', 'x'.repeat(57), undefined],
    ['files', 'x'.repeat(58), `files__${'x'.repeat(40)}`],
    ['files', 'read.all', 'files__read_all'],
    ['files', 'größe 😀', 'files__gr__e__'],
    ['files', 'read_0123456789abcdef', 'files__read_0123456789abcdef'],
    ['files', 'read_0123456789ABCDEF', 'files__read_0123456789ABCDEF'],
    ['files', '0123456789abcdef', 'files__0123456789abcdef'],
    ['files', 'read-0123456789abcdef', undefined],
    ['files', 'read_0123456789abcde', undefined],
    ['f'.repeat(70), 'read', 'f'.repeat(47)],
    ['a', 'b__c', undefined],
    ['a__b', 'c', 'a__b__c'],
    ['a', '_c', undefined],
    ['a_', 'c', 'a___c'],
  ];
  for (const [template, name, mapped] of table) {
    const wanted = mapped === undefined ? `${template}__${name}` : `${mapped}_${digits(template, name)}`;
    assert.is(aggregateName({ template, name }), wanted);
  }
});

test('makes names that clients accept, and says how each is resolved', () => {
  fc.assert(
    fc.property(pairs, (own) => {
      const aggregated = aggregateName(own);
      assert.match(aggregated, /^[A-Za-z0-9_-]{1,64}$/);
      const isMapped = mayBeMapped(aggregated);
      assert.equal(splitName(aggregated), isMapped ? undefined : own);
      const isFrom = mayBeFrom(aggregated, own.template) && mayBeFrom(aggregated, own.template, own.name);
      if (isMapped) assert.ok(isFrom);
    }),
    { numRuns: 2_000 },
  );
});

test('gives no name to two pairs, whatever one of them knows about the other', () => {
  // The second pair is made of the name of the first one, split at any place.
  const forged = fc.tuple(pairs, fc.nat(63), fc.constantFrom(0, 1, 2)).map(([own, at, skipped]) => {
    const aggregated = aggregateName(own);
    return [own, { template: aggregated.slice(0, at), name: aggregated.slice(at + skipped) }] as const;
  });
  fc.assert(
    fc.property(fc.oneof(fc.tuple(pairs, pairs), forged), ([one, other]) => {
      if (one.template === other.template && one.name === other.name) return;
      assert.is.not(aggregateName(one), aggregateName(other));
    }),
    { numRuns: 5_000 },
  );
});

// Templates whose names and tools are made of the names of others: `a__b` with `c`, `a` with `b__c`, and mapped names.
const parts = fc.constantFrom(
  'a',
  'b',
  'c',
  '_',
  '__',
  'a__b',
  'x'.repeat(50),
  '_0123456789abcdef',
  '.',
  'ä',
);
const joined = fc.array(parts, { minLength: 1, maxLength: 3 }).map((some) => some.join(''));
const related = fc.tuple(joined, joined).chain(([template, name]) => {
  const mapped = aggregateName({ template, name });
  const stolen = fc.nat(mapped.length - 3).map((at) => ({
    template: mapped.slice(0, at + 1),
    name: mapped.slice(at + 1).replace(/^__/, '') || 'x',
  }));
  return fc.tuple(fc.constant({ template, name }), stolen, fc.oneof(pairs, stolen));
});

for (const list of ['tools', 'prompts'] as const) {
  test(`each pair of template and name has one name in the list of ${list}, whatever other templates exist`, () =>
    fc.assert(
      fc.asyncProperty(related, fc.array(related, { maxLength: 2 }), async (some, more) => {
        const byTemplate = Map.groupBy([some, ...more].flat(), ({ template }) => template);
        const namesOf = (template: string) => [...new Set(byTemplate.get(template)?.map(({ name }) => name))];
        const servers = new Map(
          [...byTemplate.keys()].map((template) => [
            template,
            new ListingBackends({ [list]: namesOf(template).map((name) => ({ name })) }),
          ]),
        );
        const directoryOf = (templates: readonly string[]) => {
          const of = (template: string) => servers.get(template) ?? new ListingBackends({});
          return new AggregateDirectory(
            aggregateLists({ backendsOf: of }),
            () => templates,
            new TaskScheduler(),
          );
        };
        const all = directoryOf([...servers.keys()]);
        const together = (await all.listing(list, CLIENT)).items.map(({ name }) => String(name));
        assert.is(new Set(together).size, together.length);
        const alone: string[] = [];
        for (const template of servers.keys()) {
          const listed = (await directoryOf([template]).listing(list, CLIENT)).items.map(({ name }) =>
            String(name),
          );
          assert.is(listed.length, namesOf(template).length);
          for (const [index, aggregated] of listed.entries()) {
            const own = { template, name: namesOf(template)[index] };
            assert.equal(await all.targetOfName(aggregated, list, CLIENT), own);
            // Also before any list was read.
            assert.equal(await directoryOf([...servers.keys()]).targetOfName(aggregated, list, CLIENT), own);
          }
          alone.push(...listed);
        }
        assert.equal(together, alone);
      }),
      { numRuns: 200 },
    ));
}

test('finds a tool by its own name if only one template of the caller has it', async () => {
  const { named, directory, a, b } = setUp();
  b.lists = { tools: [...(b.lists.tools ?? []), { name: 'get-time' }] };
  assert.equal(await named('get-time'), { template: 'b', name: 'get-time' });
  assert.equal(
    [await named('read'), await directory.targetOfName('ask', 'prompts', CLIENT)],
    [undefined, undefined],
  );
  const asked = b.asked.length;
  assert.equal([await named('read'), b.asked.length], [undefined, asked], 'lists are not read again');
  assert.equal(await setUp(['a']).named('read'), { template: 'a', name: 'read' });
  a.lists = { tools: [{ name: 'get-time' }] };
  (await directory.listing('tools', CLIENT)).items;
  assert.equal([await named('get-time'), await named('read')], [undefined, { template: 'b', name: 'read' }]);
});

test('an own name that looks like an aggregate name finds no tool', async () => {
  const { named, b } = setUp();
  const odd = ['c__read', `x_${'0'.repeat(16)}`, 'n'.repeat(257)];
  b.lists = { tools: odd.map((name) => ({ name })) };
  for (const name of odd) assert.is(await named(name), undefined);
});

test('callers share a list and its JSON until the list of a template changes, also while it is made', async () => {
  const { directory, a } = setUp();
  const [one, other] = await Promise.all([
    directory.listing('tools', CLIENT),
    directory.listing('tools', { ...CLIENT, owner: { id: 'user:other' } }),
  ]);
  assert.is(one.items, other.items);
  assert.is(one.result?.(), other.result?.());
  a.lists = { ...a.lists, tools: [{ name: 'new' }] };
  const changed = (await directory.listing('tools', CLIENT)).items;
  assert.equal(
    changed.map(({ name }) => name),
    ['a__new', 'b__read'],
  );
});

test('an own name leads to the template that has it now, when a list is again what it was', async () => {
  const { directory, named, a, b } = setUp();
  const [ofA, ofB] = [a.lists, b.lists];
  (await directory.listing('tools', CLIENT)).items;
  const own = ofA.tools?.map(({ name }) => String(name)).find((name) => name !== 'read') ?? '';
  assert.equal(await named(own), { template: 'a', name: own });
  a.lists = { ...ofA, tools: [] };
  b.lists = { ...ofB, tools: [{ name: own }] };
  (await directory.listing('tools', CLIENT)).items;
  assert.equal(await named(own), { template: 'b', name: own });
  a.lists = ofA;
  b.lists = ofB;
  (await directory.listing('tools', CLIENT)).items;
  assert.equal(await named(own), { template: 'a', name: own });
});

test('a list of a caller with fewer tools takes no own name from the others', async () => {
  const { directory, named, a } = setUp();
  const tools = new ToolRights([['a/*', 'b/other']]);
  const limited = { ...CLIENT, owner: { id: 'user:limited', tools } };
  (await directory.listing('tools', CLIENT)).items;
  (await directory.listing('tools', limited)).items;
  assert.is(await named('read'), undefined, 'two templates have it');
  assert.equal(await directory.targetOfName('read', 'tools', limited), { template: 'a', name: 'read' });
  a.lists = { tools: [] };
  (await directory.listing('tools', CLIENT)).items;
  assert.equal(await named('read'), { template: 'b', name: 'read' });
});

test('a list of a caller with fewer tools takes no page from the others', async () => {
  const { directory, a, b } = setUp();
  const withPage = (name: string) => ({ name, _meta: { ui: { resourceUri: 'ui://page' } } });
  a.lists = { tools: [withPage('read')] };
  b.lists = { tools: [withPage('read')] };
  const limited = { ...CLIENT, owner: { id: 'user:limited', tools: new ToolRights([['a/*', 'b/other']]) } };
  (await directory.listing('tools', CLIENT)).items;
  const shown = () => directory.uris.shown('b', 'ui://page', CLIENT.owner);
  const before = [shown(), directory.uris.version];
  (await directory.listing('tools', limited)).items;
  assert.equal([shown(), directory.uris.version], before);
});

test.run();
