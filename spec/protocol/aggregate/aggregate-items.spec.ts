// Items of one template in the list of all: their names, and that no client refuses the list for one of them.

import * as assert from 'uvu/assert';
import { AggregateItems } from '../../../src/protocol/aggregate/aggregate-directory.ts';
import { aggregateName } from '../../../src/protocol/aggregate/aggregate-names.ts';
import { suite } from '../../helpers/suite.ts';
import { shownTool } from '../listing-backends.ts';

const test = suite('joined items');

const LONG = 'l'.repeat(70);

test('shows tools and prompts by their joined names, and remembers whose it is where the name does not say', () => {
  const items = new AggregateItems();
  const tool = { name: 'x', title: 'X', inputSchema: { type: 'object', required: ['a'] } };
  assert.equal(items.of('tools', 't', tool), {
    template: 't',
    key: 't__x',
    shown: { ...tool, name: 't__x' },
    own: undefined,
  });
  const key = aggregateName({ template: 't', name: LONG });
  const own = { template: 't', name: LONG };
  assert.equal(items.of('prompts', 't', { name: LONG }), { template: 't', key, shown: { name: key }, own });
  const looksCut = `${'t'.repeat(40)}_0123abcd`;
  assert.equal(items.of('tools', 't', { name: looksCut })?.own, { template: 't', name: looksCut });
});

test('makes each once, for one template at a time', () => {
  const items = new AggregateItems();
  const tool = { name: 'x' };
  const made = items.of('tools', 'a', tool);
  assert.is(items.of('tools', 'a', tool), made);
  assert.is(items.of('tools', 'b', tool)?.key, 'b__x');
});

test('adds what clients insist on', () => {
  const items = new AggregateItems();
  const schemas = [undefined, 'none', null, { type: 'string' }].map((inputSchema) =>
    items.of('tools', 't', { name: 'x', ...(inputSchema === undefined ? {} : { inputSchema }) }),
  );
  for (const item of schemas) assert.equal(item?.shown, shownTool('t__x'));
  assert.equal(items.of('resources', 't', { uri: 'a:1' })?.shown, { uri: 'a:1', name: 'a:1' });
  const resource = { uri: 'a:1', name: 'one' };
  assert.is(items.of('resources', 't', resource)?.shown, resource);
  assert.equal(items.of('resourceTemplates', 't', { uriTemplate: 'a:{x}' })?.key, 'a:{x}');
});

test('leaves out what nobody could ask for', () => {
  const items = new AggregateItems();
  for (const name of [undefined, 7, '', 'x'.repeat(100_000)])
    assert.is(items.of('tools', 't', name === undefined ? {} : { name }), undefined);
  for (const uri of [7, '']) assert.is(items.of('resources', 't', { uri, name: 'x' }), undefined);
  assert.is(items.of('resourceTemplates', 't', { uri: 'a:1' }), undefined);
});

test.run();
